"""Start services in order, wait until they answer, and say what went wrong."""

import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console

from keylag.errors import KeylagError
from keylag.processes import CommandError, start
from keylag.services.base import Service, Site
from keylag.tools.base import tail

START_SECONDS = 60.0
"""How long a service may take until it answers."""
POLL_SECONDS = 0.05


class StackError(KeylagError):
    """A stack did not start; the text says which part, why, and what to do."""


@dataclass
class Launch:
    """One start of some services of a stack."""

    site: Site
    console: Console
    patience: float = START_SECONDS
    _waiting: dict[str, tuple[Service, subprocess.Popen[bytes], float]] = field(
        default_factory=dict
    )

    def start(self, services: Sequence[Service]) -> None:
        """Start them side by side, each once what it needs answers.

        Raises StackError with the end of the log of the one that did not start.
        """
        with self.console.status("Starting") as line:
            for service in services:
                line.update(f"Starting {service.name}")
                if service.needs:
                    # All that came before, so that each time shown is its own.
                    self._wait_for(list(self._waiting))
                self._start_one(service)
            line.update(f"Waiting for {', '.join(self._waiting)}")
            self._wait_for(list(self._waiting))

    def _start_one(self, service: Service) -> None:
        started = time.monotonic()
        try:
            service.prepare(self.site)
            process = start(
                service.command(self.site),
                self.site.environment(service.name, service.environment(self.site)),
                self.site.log(service.name),
            )
        except (CommandError, OSError) as error:
            raise self._failed(service, str(error)) from error
        self._waiting[service.name] = (service, process, started)

    def _wait_for(self, names: Iterable[str]) -> None:
        for name in names:
            service, process, started = self._waiting[name]
            self._wait_until_healthy(service, process)
            del self._waiting[name]
            seconds = time.monotonic() - started
            place = self.site.address(service.ports[0])
            self.console.print(
                f"  {name:<16} {place:<18} ready in {seconds:.1f} s", highlight=False
            )

    def _wait_until_healthy(
        self, service: Service, process: subprocess.Popen[bytes]
    ) -> None:
        deadline = time.monotonic() + self.patience
        while process.poll() is None:
            if service.healthy(self.site.ports):
                return
            if time.monotonic() > deadline:
                what = f"did not answer within {self.patience:.0f} s"
                raise self._failed(service, what)
            time.sleep(POLL_SECONDS)
        raise self._failed(service, f"died with code {process.returncode}")

    def _failed(self, service: Service, what: str) -> StackError:
        log = self.site.log(service.name)
        return StackError(
            f"{service.name}: {what}\nThe end of {log}:\n{tail(log)}\n{service.advice}"
        )

"""Starts services in order, waits until they are healthy, and explains failures."""

import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console

from keylag.errors import KeylagError
from keylag.processes import CommandError, start_server
from keylag.services.base import Service, ServiceContext
from keylag.steps import show_step
from keylag.tools.tool import tail

START_TIMEOUT_SECONDS = 60.0
"""How long a service may take to become healthy."""
POLL_SECONDS = 0.05


class StackError(KeylagError):
    """A service of a stack did not start, or a process does not answer."""


@dataclass
class Launcher:
    """Starts services of one stack; use an instance once."""

    context: ServiceContext
    console: Console
    timeout_seconds: float = START_TIMEOUT_SECONDS
    _pending: dict[str, tuple[Service, subprocess.Popen[bytes], float]] = field(
        default_factory=dict
    )

    def start(self, services: Sequence[Service]) -> None:
        """Start services in parallel, each after its dependencies are healthy.

        Raises StackError with the end of the log of the service that failed.
        """
        with show_step(self.console, "Starting") as line:
            for service in services:
                line.update(f"Starting {service.name}")
                if service.depends_on:
                    # Wait for all earlier services, so that each time shown is its own.
                    self._wait_for(list(self._pending))
                self._start_one(service)
            line.update(f"Waiting for {', '.join(self._pending)}")
            self._wait_for(list(self._pending))

    def _start_one(self, service: Service) -> None:
        started = time.monotonic()
        try:
            service.prepare(self.context)
            process = start_server(
                service.command(self.context),
                self.context.environment(
                    service.name, service.environment(self.context)
                ),
                self.context.log(service.name),
            )
        except (CommandError, OSError) as error:
            raise self._start_error(service, str(error)) from error
        self._pending[service.name] = (service, process, started)

    def _wait_for(self, names: Iterable[str]) -> None:
        for name in names:
            service, process, started = self._pending[name]
            self._wait_until_healthy(service, process)
            del self._pending[name]
            seconds = time.monotonic() - started
            address = self.context.address(service.ports[0])
            self.console.print(
                f"  {name:<16} {address:<18} ready in {seconds:.1f} s", highlight=False
            )

    def _wait_until_healthy(
        self, service: Service, process: subprocess.Popen[bytes]
    ) -> None:
        deadline = time.monotonic() + self.timeout_seconds
        while process.poll() is None:
            if service.healthy(self.context.ports):
                return
            if time.monotonic() > deadline:
                reason = f"no answer within {self.timeout_seconds:.0f} s"
                raise self._start_error(service, reason)
            time.sleep(POLL_SECONDS)
        raise self._start_error(service, f"ended with exit code {process.returncode}")

    def _start_error(self, service: Service, reason: str) -> StackError:
        log = self.context.log(service.name)
        return StackError(
            f"{service.name} did not start: {reason}\n"
            f"The end of {log}:\n{tail(log)}\n{service.advice}"
        )

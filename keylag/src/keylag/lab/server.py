"""Servers of a laboratory, found by the variables in their environment."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag import processes
from keylag.lab.iproute import NO_PROXY, LabError, command_in
from keylag.lab.network import Host
from keylag.services.base import inherited_environment
from keylag.tools.tool import tail

POLL_SECONDS: Final = 0.1


@dataclass(frozen=True)
class LabServer:
    """A server that may run or not; a subclass names its process."""

    lab: Path
    """Folder of the laboratory."""

    @property
    def service(self) -> str:
        """The name of its process."""
        raise NotImplementedError

    @property
    def log(self) -> Path:
        """Its log."""
        return self.lab / "logs" / f"{self.service}.log"

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of its process, with some more variables."""
        return {
            **inherited_environment(),
            **NO_PROXY,
            **processes.stack_variables(self.lab, self.service),
            **variables,
        }

    def start_command(
        self, command: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        """Start a command; raises OSError."""
        processes.start_server(command, self.environment(variables), self.log)

    def processes(self) -> list[processes.StackProcess]:
        """Return its processes, and those that it started."""
        return processes.find_processes(stack=self.lab, service=self.service)

    def pids(self) -> list[int]:
        """Return the numbers of its processes."""
        return [one.process.pid for one in self.processes()]

    def require_pids(self) -> list[int]:
        """Return the numbers of its processes; raises LabError if it has ended."""
        pids = self.pids()
        if not pids:
            # While one program becomes another, as `ip netns exec` does, it has no
            # variables for a moment.
            time.sleep(POLL_SECONDS)
            pids = self.pids()
        if not pids:
            message = f"{self.service} ended. The end of {self.log}:\n{tail(self.log)}"
            raise LabError(message)
        return pids

    def wait_until(self, ready: Callable[[], bool], timeout_seconds: float) -> None:
        """Wait until it is ready; raises LabError if it ends, or after the time-out."""
        deadline = time.monotonic() + timeout_seconds
        while not ready():
            self.require_pids()
            if time.monotonic() > deadline:
                message = (
                    f"{self.service} is not ready after {timeout_seconds:.0f} s. "
                    f"The end of {self.log}:\n{tail(self.log)}"
                )
                raise LabError(message)
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Stop it in good order, if it runs."""
        processes.stop_processes(self.processes())


@dataclass(frozen=True)
class HostServer(LabServer):
    """A server in the namespace of a host."""

    host: Host

    def start_command(
        self, command: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        """Start a command on the host; raises OSError."""
        super().start_command(command_in(self.host.namespace, command), variables)

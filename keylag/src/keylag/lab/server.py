"""A server on a host of a laboratory, found by the variables in its environment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keylag import processes
from keylag.lab.iproute import NO_PROXY, command_in
from keylag.lab.network import Host
from keylag.services.base import inherited_environment


@dataclass(frozen=True)
class LabServer:
    """A server that may run or not; a subclass names its process."""

    lab: Path
    """Folder of the laboratory."""
    host: Host

    @property
    def service(self) -> str:
        """The name of its process."""
        raise NotImplementedError

    @property
    def log(self) -> Path:
        """Its log."""
        return self.lab / "logs" / f"{self.service}.log"

    def start_command(
        self, command: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        """Start a command on the host; raises OSError."""
        environment = {
            **inherited_environment(),
            **NO_PROXY,
            **processes.stack_variables(self.lab, self.service),
            **variables,
        }
        processes.start_server(
            command_in(self.host.namespace, command), environment, self.log
        )

    def processes(self) -> list[processes.StackProcess]:
        """Return its processes, and those that it started."""
        return processes.find_processes(stack=self.lab, service=self.service)

    def pids(self) -> list[int]:
        """Return the numbers of its processes."""
        return [one.process.pid for one in self.processes()]

    def stop(self) -> None:
        """Stop it in good order, if it runs."""
        processes.stop_processes(self.processes())

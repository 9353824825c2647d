"""The Cassandra of a tenant: a server of its own, as each guest of the paper had."""

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.lab.server import LabServer
from keylag.paths import DEPLOY
from keylag.ports import allocate_ports
from keylag.services.base import HOST, Ports
from keylag.state import state_folder, write_output
from keylag.tools import cassandra
from keylag.tools.install import require_tool

TEMPLATES: Final = DEPLOY / "neighbours"
HEAP: Final = "512m"
START_SECONDS: Final = 120.0
CONNECT_SECONDS: Final = 2.0
CLIENTS: Final = "clients"
INTERNODE: Final = "internode"
ADVICE: Final = "Stop that process, and run the command again."


def launcher() -> Path:
    """Return the program that runs a class of Cassandra or YCSB.

    Raises ToolError if it is not installed.
    """
    return require_tool(cassandra.TOOL, state_folder() / "tools")


def log_option() -> str:
    """Return the option of Java that makes a program log warnings only."""
    return f"-Dlogback.configurationFile={TEMPLATES / 'logback.xml'}"


@dataclass(frozen=True)
class Cassandra(LabServer):
    """The database of a tenant."""

    number: int
    """Of the tenant, from 1."""

    @property
    def service(self) -> str:
        """The name of its process."""
        return f"cassandra-{self.number}"

    @property
    def folder(self) -> Path:
        """The folder with its configuration and data."""
        return self.lab / "tenants" / str(self.number) / "cassandra"

    @property
    def port(self) -> int:
        """The port for clients, once it has been started."""
        return self._saved_ports()[CLIENTS]

    def start(self) -> None:
        """Start it, and wait until it accepts connections; leaves one that runs.

        Raises LabError, PortTakenError, ToolError or OSError.
        """
        if not self.pids():
            self.folder.mkdir(parents=True, exist_ok=True)
            # Its data name the ports.
            found = allocate_ports((CLIENTS, INTERNODE), self._saved_ports(), ADVICE)
            write_output(self.folder / "ports.json", json.dumps(found))
            write_output(self._config, render_config(self.folder, self.service, found))
            self.start_command(self._command(), {})
        self.wait_until(self.accepts_connections, START_SECONDS)

    def accepts_connections(self) -> bool:
        """Return whether clients can connect."""
        try:
            with socket.create_connection((HOST, self.port), CONNECT_SECONDS):
                return True
        except OSError:
            return False

    @property
    def _config(self) -> Path:
        return self.folder / "cassandra.yaml"

    def _saved_ports(self) -> Ports:
        try:
            found: Ports = json.loads((self.folder / "ports.json").read_text("utf-8"))
        except FileNotFoundError:
            return {}
        return found

    def _command(self) -> list[str]:
        program = launcher()
        agent = cassandra.jar(program.parents[1], "jamm")
        return [
            str(program),
            f"@{TEMPLATES / 'java.options'}",
            *(f"-Xms{HEAP}", f"-Xmx{HEAP}"),
            # So that a limit of memory concerns files, and not the heap.
            "-XX:+AlwaysPreTouch",
            "-XX:+ExitOnOutOfMemoryError",
            f"-javaagent:{agent}",
            log_option(),
            f"-Dcassandra.config=file://{self._config}",
            f"-Dcassandra.storagedir={self.folder}",
            "-Dcassandra-foreground=yes",
            "org.apache.cassandra.service.CassandraDaemon",
        ]


def render_config(folder: Path, name: str, ports: Ports) -> str:
    """Return the configuration of a Cassandra with its files below a folder."""
    template = (TEMPLATES / "cassandra.yaml").read_text(encoding="utf-8")
    return template.format(
        folder=folder,
        name=name,
        port=ports[CLIENTS],
        internode_port=ports[INTERNODE],
    )

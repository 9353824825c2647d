"""The servers of Swift: those of storage nodes, and a proxy server for each region."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.lab.iproute import command_in
from keylag.lab.network import Host
from keylag.lab.server import HostServer
from keylag.lab.swift.rings import PORTS
from keylag.paths import DEPLOY
from keylag.state import write_private

TEMPLATES: Final = DEPLOY / "swift-regions"
PROXY_PORT: Final = 8080
"""At 127.0.0.1 of a region's router."""
START_SECONDS: Final = 30.0
HEALTHCHECK: Final = (
    "import sys\n"
    "from keylag.services.base import http_ok\n"
    f"sys.exit(not http_ok({PROXY_PORT}, '/healthcheck'))"
)
"""A program that fails if no proxy server answers in its own namespace."""
LISTENING: Final = "0A"
"""The state of a socket in /proc/PID/net/tcp."""


@dataclass(frozen=True)
class Server(HostServer):
    """A server of Swift on a host."""

    kind: str
    """`object`, `container`, `account` or `proxy`."""
    port: int

    @property
    def service(self) -> str:
        """The name of its process."""
        return f"swift-{self.kind}-{self.host.name}"

    @property
    def config(self) -> Path:
        """Its configuration."""
        return self.lab / "swift" / f"{self.kind}-{self.host.name}.conf"

    def start(self, python: Path, config: str, variables: Mapping[str, str]) -> None:
        """Write the configuration, and start the server in Swift's environment.

        `python` is the interpreter of this environment.  Raises OSError.
        """
        write_private(self.config, config)
        program = (
            TEMPLATES / "proxy_server.py"
            if self.kind == "proxy"
            else python.with_name(f"swift-{self.kind}-server")
        )
        command = [str(python), str(program), str(self.config), "--verbose"]
        self.start_command(command, variables)

    def is_ready(self) -> bool:
        """Return whether a storage server listens, or a proxy server answers.

        The parent of a proxy server's processes listens before they have started.
        """
        if self.kind != "proxy":
            return self.listens()
        command = command_in(self.host.namespace, [sys.executable, "-c", HEALTHCHECK])
        ended = subprocess.run(command, capture_output=True, check=False)
        return ended.returncode == 0

    def listens(self) -> bool:
        """Return whether it accepts connections."""
        return any(self.port in listening_ports(pid) for pid in self.pids())


def storage_servers(lab: Path, host: Host) -> list[Server]:
    """Return the servers of a storage node."""
    return [Server(lab, host, kind, port) for kind, port in PORTS.items()]


def proxy_server(lab: Path, router: Host) -> Server:
    """Return the proxy server of a region."""
    return Server(lab, router, "proxy", PROXY_PORT)


def wait_until_ready(servers: Sequence[Server]) -> None:
    """Wait until all servers are ready; raises LabError."""
    for one in servers:
        one.wait_until(one.is_ready, START_SECONDS)


def listening_ports(pid: int) -> set[int]:
    """Return the TCP ports in the network of a process at which somebody listens."""
    try:
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return set()
    rows = (line.split() for line in lines)
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == LISTENING}

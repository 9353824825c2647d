"""What a service is, and the site it is set up on."""

import hashlib
import http
import http.client
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from keylag.processes import marks, run_to_end
from keylag.tools import Tools

HOST = "127.0.0.1"
ANSWER_SECONDS = 2.0
"""How long a health check waits for an answer."""
SOCKET_PATH_LIMIT = 107
"""Bytes that the kernel allows for the path of a Unix socket."""
SHORT_FOLDER = Path("/tmp")  # noqa: S108 - a folder in it is the user's own
"""Where sockets go instead: not $TMPDIR, which may be long, and another for `down`."""
LONGEST_SOCKET = "keystone-stats.sock"
OWN_PREFIXES = (
    *("OS_", "OTEL_", "KEYLAG_", "PYTHON"),
    *("UWSGI_", "MYSQL_", "MARIADB_", "GF_"),
)
"""Variables of the caller's shell that would change what our servers do."""

Ports = Mapping[str, int]
"""The ports of a stack by their names."""


@dataclass(frozen=True)
class StackOptions:
    """What may differ from one start of Keystone, or its database, to the next."""

    cache: str = "null"
    """A key of keystone.CACHE_BACKENDS."""
    processes: int = 2
    threads: int = 1
    """Of each process."""
    module: str = "keylag_otel.wsgi:application"
    """The WSGI application; `keystone.wsgi.api:application` is Keystone bare."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """More variables for Keystone's workers; these win over ours."""
    extras: tuple[str, ...] = ()
    """Services beside the usual ones: keys of services.EXTRAS."""
    query_cache: Mapping[str, int] = field(default_factory=dict)
    """Statements whose answers ProxySQL keeps: a pattern, and for how many ms."""
    mariadb: Mapping[str, str] = field(default_factory=dict)
    """Variables of the database server; these win over deploy/mysql/keylag.cnf."""


@dataclass(frozen=True)
class Secrets:
    """The generated passwords of one stack, each for one holder; empty if unknown."""

    admin: str = ""
    """The administrator of Keystone."""
    database: str = ""
    """Keystone, at the database and at ProxySQL."""
    exporters: str = ""
    """The exporters, which may only read statistics and one table."""
    proxysql: str = ""
    """ProxySQL, which asks the database whether it lives, and its administrator."""
    profiler: str = ""
    """Whoever asks OSProfiler for a trace; such requests are signed with it."""
    service: str = ""
    """The small service, at Keystone."""


@dataclass(frozen=True)
class Site:
    """Everything a service may ask for: folders, programs, ports, passwords."""

    folder: Path
    tools: Tools
    options: StackOptions
    ports: Ports
    secrets: Secrets

    @property
    def data(self) -> Path:
        """The folder of what a prepared stack is copied from."""
        return self.folder / "data"

    @property
    def run(self) -> Path:
        """The folder for sockets: in the stack, or in /tmp if the path is long."""
        return run_folder(self.folder)

    def log(self, service: str) -> Path:
        """Return the log of a service."""
        return self.folder / "logs" / f"{service}.log"

    def address(self, port: str) -> str:
        """Return host:port."""
        return f"{HOST}:{self.ports[port]}"

    def environment(
        self, service: str, more: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return the environment of a process of this stack, marked as such."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(OWN_PREFIXES)
        }
        # A proxy of the caller's must not come between the parts of a stack.
        local = {"NO_PROXY": f"{HOST},localhost", "no_proxy": f"{HOST},localhost"}
        return {**inherited, **local, **marks(self.folder, service), **(more or {})}

    def once(
        self, service: str, command: list[str | Path], env: Mapping[str, str]
    ) -> None:
        """Run a helper of a service to its end, into the service's log."""
        run_to_end(command, self.environment(service, env), self.log(service))


@dataclass(frozen=True)
class Service:
    """One server: how to prepare it, start it, and tell that it works."""

    name: str
    ports: tuple[str, ...]
    """Names of its ports; the first is the one it is known by."""
    prepare: Callable[[Site], None]
    """Makes what it needs on disk; what is there already is left alone."""
    command: Callable[[Site], list[str | Path]]
    environment: Callable[[Site], dict[str, str]]
    healthy: Callable[[Ports], bool]
    """Asks it something over its own protocol; never raises."""
    advice: str
    """What to look at when it does not start."""
    needs: tuple[str, ...] = ()
    """Services that have to work before this one is prepared."""
    renews: tuple[str, ...] = ()
    """Services that are restarted with it, so that it starts with them empty."""
    watches: bool = False
    """It only looks at the others: data is prepared without it."""


def run_folder(folder: Path) -> Path:
    """Return where a stack's sockets go, as a path short enough for one."""
    inside = folder / "run"
    if len(os.fsencode(inside / LONGEST_SOCKET)) <= SOCKET_PATH_LIMIT:
        return inside
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return SHORT_FOLDER / f"keylag-{os.getuid()}-{digest}"


def no_files(_: Site) -> None:
    """Make nothing on disk: none is needed."""


def nothing(_: Site) -> dict[str, str]:
    """Add nothing to the environment."""
    return {}


def answers_http(port: int, path: str) -> bool:
    """Tell whether a GET is answered with a code below 400."""
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < http.HTTPStatus.BAD_REQUEST
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def talks(port: int, question: bytes = b"") -> bytes:
    """Return the first bytes a server sends, after a question if there is one."""
    try:
        with socket.create_connection((HOST, port), ANSWER_SECONDS) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.sendall(question)
            return connection.recv(64)
    except OSError:
        return b""

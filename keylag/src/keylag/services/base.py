"""Service definitions, the context that they run in, and health checks."""

import hashlib
import http
import http.client
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from keylag.processes import run_and_wait, stack_variables
from keylag.tools import Tools

HOST = "127.0.0.1"
MAX_PROCESSES = 64
"""Of a Keystone, and threads of each."""
HEALTH_TIMEOUT_SECONDS = 2.0
"""How long a health check waits for a response."""
SOCKET_PATH_LIMIT = 107
"""Longest path of a Unix socket in bytes."""
SHORT_SOCKET_FOLDER = Path("/tmp")  # noqa: S108 - a folder in it is the user's own
"""Folder for sockets if the stack's path is too long; $TMPDIR may differ in `down`."""
LONGEST_SOCKET = "second-node-stats.sock"
REMOVED_PREFIXES = (
    *("OS_", "OTEL_", "KEYLAG_", "PYTHON"),
    *("UWSGI_", "MYSQL_", "MARIADB_", "GF_"),
)
"""Prefixes of inherited variables that would change the behaviour of servers."""

Ports = Mapping[str, int]
"""The ports of a stack by name."""


@dataclass(frozen=True)
class StackOptions:
    """Options of a stack that may change from one start to the next."""

    cache: str = "null"
    """A key of keystone.CACHE_BACKENDS."""
    processes: int = 2
    threads: int = 1
    """Number of threads in each process."""
    module: str = "keylag_otel.wsgi:application"
    """The WSGI application; `keystone.wsgi.api:application` is uninstrumented."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment of Keystone's workers; overrides Keylag's own variables."""
    extras: tuple[str, ...] = ()
    """Services beside the usual ones: keys of services.EXTRA_SERVICES."""
    query_cache: Mapping[str, int] = field(default_factory=dict)
    """Statements that ProxySQL caches: a pattern, and the time to live in ms."""
    mariadb: Mapping[str, str] = field(default_factory=dict)
    """Variables of the database server; overrides deploy/mysql/keylag.cnf."""
    memcached: Mapping[str, str] = field(default_factory=dict)
    """Long options of memcached: `memory-limit` in MB, `conn-limit`."""
    service: Mapping[str, str] = field(default_factory=dict)
    """Environment of the extra service; overrides Keylag's own variables."""
    second_node: Mapping[str, str] = field(default_factory=dict)
    """Environment of the second Keystone only; overrides that of both."""
    users: int = 100
    """Users of the sample cloud."""


@dataclass(frozen=True)
class Secrets:
    """The generated passwords of a stack, one for each account; empty if unknown."""

    admin: str = ""
    """Keystone's administrator."""
    database: str = ""
    """Keystone's account in the database and in ProxySQL."""
    exporters: str = ""
    """The exporters' account, which reads statistics and one table."""
    proxysql: str = ""
    """ProxySQL's monitor account in the database, and its administrator."""
    profiler: str = ""
    """The HMAC key that signs requests for OSProfiler."""
    service: str = ""
    """The service's user in Keystone."""


@dataclass(frozen=True)
class ServiceContext:
    """What services need to run: folders, programs, ports and passwords."""

    folder: Path
    tools: Tools
    options: StackOptions
    ports: Ports
    secrets: Secrets

    @property
    def data(self) -> Path:
        """The data folder, which `keylag.datadir_cache` copies."""
        return self.folder / "data"

    @property
    def socket_folder(self) -> Path:
        """The folder for sockets: in the stack, or in /tmp if its path is too long."""
        return socket_folder(self.folder)

    def log(self, service: str) -> Path:
        """Return the path of a service's log."""
        return self.folder / "logs" / f"{service}.log"

    def address(self, port: str) -> str:
        """Return HOST:PORT for a port by name."""
        return f"{HOST}:{self.ports[port]}"

    def environment(
        self, service: str, variables: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return the environment of a process of this stack.

        It has the variables that identify the process, and the given ones.
        """
        # Services of a stack connect directly, without the user's HTTP proxy.
        local = {"NO_PROXY": f"{HOST},localhost", "no_proxy": f"{HOST},localhost"}
        return {
            **inherited_environment(),
            **local,
            **stack_variables(self.folder, service),
            **(variables or {}),
        }

    def run_helper(
        self, service: str, command: list[str | Path], env: Mapping[str, str]
    ) -> None:
        """Run a helper command; its output goes to the service's log.

        Raises CommandError if it fails.
        """
        run_and_wait(command, self.environment(service, env), self.log(service))


@dataclass(frozen=True)
class Service:
    """A server: how to prepare, start and check it."""

    name: str
    ports: tuple[str, ...]
    """Names of its ports; the first is the one that clients use."""
    prepare: Callable[[ServiceContext], None]
    """Creates missing files; raises CommandError or OSError."""
    command: Callable[[ServiceContext], list[str | Path]]
    environment: Callable[[ServiceContext], dict[str, str]]
    healthy: Callable[[Ports], bool]
    """Health check over the service's own protocol; never raises."""
    advice: str
    """What to check if it does not start; a sentence for users."""
    depends_on: tuple[str, ...] = ()
    """Services that have to be healthy before this one is prepared."""
    restart_with: tuple[str, ...] = ()
    """Services that restart together with it, such as its cache."""
    observes_only: bool = False
    """Whether it only observes others; it is not needed to fill the database."""
    extra: str = ""
    """The extra of `keylag up --with` that it belongs to; usual services have none."""


def inherited_environment() -> dict[str, str]:
    """Return the environment without what would change the behaviour of servers."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(REMOVED_PREFIXES)
    }


def socket_folder(folder: Path) -> Path:
    """Return the folder of a stack's sockets; its path is short enough for them."""
    inside = folder / "run"
    if len(os.fsencode(inside / LONGEST_SOCKET)) <= SOCKET_PATH_LIMIT:
        return inside
    return SHORT_SOCKET_FOLDER / f"keylag-{os.getuid()}-{folder_digest(folder)}"


def folder_digest(folder: Path) -> str:
    """Return a short name for a stack's folder, for what is outside of it."""
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]


def prepare_nothing(_: ServiceContext) -> None:
    """Do nothing, for a service without files."""


def no_variables(_: ServiceContext) -> dict[str, str]:
    """Return no variables, for a service without an environment of its own."""
    return {}


def http_ok(port: int, path: str) -> bool:
    """Return whether the response to a GET has a status below 400."""
    connection = http.client.HTTPConnection(HOST, port, timeout=HEALTH_TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < http.HTTPStatus.BAD_REQUEST
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def first_bytes(port: int, request: bytes = b"") -> bytes:
    """Return up to 64 bytes of a server's response; empty if it does not answer."""
    try:
        with socket.create_connection(
            (HOST, port), HEALTH_TIMEOUT_SECONDS
        ) as connection:
            connection.settimeout(HEALTH_TIMEOUT_SECONDS)
            connection.sendall(request)
            return connection.recv(64)
    except OSError:
        return b""

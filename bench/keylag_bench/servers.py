"""The servers that all arms share, and the counters of their caches."""

import hashlib
import re
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from keylag.paths import CHECKOUT
from keylag.services import keystone, mariadb, memcached, redis
from keylag.services.base import (
    HEALTH_TIMEOUT_SECONDS,
    HOST,
    ServiceContext,
    StackOptions,
)
from keylag.stack import InitialData, Stack
from keylag.stack_record import load_secrets
from keylag.state import locked, state_folder
from keylag.tools import Tools, venvs
from keylag.tools.install import require_tool
from keylag_bench.arms_and_workloads import COMMON

SERVICES = (mariadb.SERVICE, memcached.SERVICE, redis.SERVICE)

# (server, command, end of the response); responses are text.
_FLUSH = (
    ("memcached", b"flush_all\r\n", b"OK\r\n"),
    ("redis", b"FLUSHALL\r\n", b"+OK\r\n"),
)
_STATISTICS = (
    ("memcached", b"stats\r\n", b"END\r\n"),
    ("redis", b"INFO commandstats\r\nPING\r\n", b"+PONG\r\n"),
)
# Commands of Keystone's cache, without the pushes of OSProfiler to Redis.
_COUNTED = re.compile(
    r"^(?:STAT (?:cmd_get|cmd_set|cmd_touch|delete_hits|delete_misses) "
    r"|cmdstat_(?:get|set|setex|mget|mset|del):calls=)(\d+)",
    re.MULTILINE,
)


class Servers:
    """MariaDB with an administrator in Keystone's tables, memcached and Redis."""

    def __init__(self, stack: Stack, sink_port: int) -> None:
        self._stack = stack
        self.sink_port = sink_port

    @property
    def python(self) -> Path:
        """Keystone's interpreter."""
        return self._stack.tools.keystone / "bin" / "python"

    @property
    def password(self) -> str:
        """The administrator's password."""
        return load_secrets(self._stack.data).admin

    def log(self, arm: str) -> Path:
        """Return the path of an arm's log."""
        return self._stack.log(f"bench-{arm}")

    def environment(self, arm: str, options: Mapping[str, str]) -> dict[str, str]:
        """Return the environment variables of an arm's process.

        `options` are added to those of Keystone; names of servers in braces are
        replaced by addresses.
        """
        addresses = {
            **{name: f"{HOST}:{self._stack.port(name)}" for name in _PORTS},
            "sink": f"http://{HOST}:{self.sink_port}",
        }
        filled = {key: value.format_map(addresses) for key, value in options.items()}
        site = keystone_site(self._stack, self.sink_port)
        return site.environment(
            f"bench-{arm}", {**keystone.oslo_variables(site), **filled}
        )

    def flush_caches(self) -> None:
        """Delete all values from both caches."""
        for name, command, end in _FLUSH:
            send_command(self._stack.port(name), command, end)

    def cache_calls(self) -> int:
        """Return the number of calls that both caches received since their start."""
        statistics = [
            send_command(self._stack.port(name), *command)
            for name, *command in _STATISTICS
        ]
        return count_cache_calls("".join(statistics))


_PORTS = ("memcached", "redis")


def count_cache_calls(statistics: str) -> int:
    """Return the number of cache calls in statistics of memcached and Redis."""
    return sum(int(number) for number in _COUNTED.findall(statistics))


def send_command(port: int, command: bytes, end: bytes) -> str:
    """Send a command and return the response up to `end`; raises OSError without it."""
    response = b""
    with socket.create_connection((HOST, port), HEALTH_TIMEOUT_SECONDS) as connection:
        connection.sendall(command)
        while not response.endswith(end):
            chunk = connection.recv(65536)
            if not chunk:
                message = f"port {port} closed the connection"
                raise ConnectionError(message)
            response += chunk
    return response.decode()


def keystone_site(stack: Stack, endpoint: int) -> ServiceContext:
    """Return the site of a Keystone; nothing listens on its public endpoint."""
    ports = {service.name: stack.port(service.name) for service in SERVICES}
    return ServiceContext(
        folder=stack.folder,
        tools=stack.tools,
        options=StackOptions(),
        ports={**ports, "keystone": endpoint},
        secrets=load_secrets(stack.data),
    )


def initialise_keystone(stack: Stack) -> None:
    """Create Keystone's tables, and an administrator with a cheap password hash.

    `keystone-manage bootstrap` hashes a password only if it differs from the present
    one, so the first call sets another password.
    """
    site = keystone_site(stack, stack.port("mariadb"))
    keystone.SERVICE.prepare(site)
    program = stack.tools.keystone / "bin" / "keystone-manage"
    environment = {**keystone.oslo_variables(site), **COMMON}
    for password in (secrets.token_urlsafe(), site.secrets.admin):
        site.run_helper(
            "keystone",
            [program, f"--config-dir={keystone.CONFIG_FOLDER}", "bootstrap"],
            {**environment, "OS_BOOTSTRAP_PASSWORD": password},
        )


def _initial_data() -> InitialData:
    lock = (CHECKOUT / "locks" / "bench.txt").read_bytes()
    cost = COMMON["OS_IDENTITY__PASSWORD_HASH_ROUNDS"]
    return InitialData(
        f"bench {cost} {hashlib.sha256(lock).hexdigest()}", initialise_keystone
    )


@contextmanager
def open_servers(sink_port: int, console: Console) -> Iterator[Servers]:
    """Start the servers, and stop them at the end of the context.

    Waits for another benchmark of this checkout to end.  Raises StackError or
    ToolError.
    """
    folder = state_folder()
    interpreter = require_tool(venvs.BENCH, folder / "tools").parents[1]
    stack = Stack(
        folder / "bench",
        replace(Tools.load(), keystone=interpreter),
        StackOptions(),
        initial_data=_initial_data(),
        console=console,
        services=SERVICES,
    )
    # Two benchmarks on the same processor would disturb each other.
    with locked(folder / "bench.lock"):
        stack.down()
        with stack:
            yield Servers(stack, sink_port)

"""The servers that every arm shares, and what they say they were asked."""

import hashlib
import re
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from keylag.services import keystone, mariadb, memcached, redis
from keylag.services.base import (
    HEALTH_TIMEOUT_SECONDS,
    HOST,
    ServiceContext,
    StackOptions,
)
from keylag.stack import InitialData, Stack
from keylag.stack_record import load_secrets
from keylag.state import CHECKOUT, locked, state_folder
from keylag.tools import Tools, venvs
from keylag.tools.install import require_tool
from keylag_bench.tables import COMMON

SERVICES = (mariadb.SERVICE, memcached.SERVICE, redis.SERVICE)

# (server, question, end of the answer); the answer is text.
_FLUSH = (
    ("memcached", b"flush_all\r\n", b"OK\r\n"),
    ("redis", b"FLUSHALL\r\n", b"+OK\r\n"),
)
_ASK = (
    ("memcached", b"stats\r\n", b"END\r\n"),
    ("redis", b"INFO commandstats\r\nPING\r\n", b"+PONG\r\n"),
)
# What Keystone's cache sends; OSProfiler's own pushes to Redis are none of it.
_COUNTED = re.compile(
    r"^(?:STAT (?:cmd_get|cmd_set|cmd_touch|delete_hits|delete_misses) "
    r"|cmdstat_(?:get|set|setex|mget|mset|del):calls=)(\d+)",
    re.MULTILINE,
)


class Servers:
    """A database with an administrator in it, and two caches."""

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
        """Return the log of an arm."""
        return self._stack.log(f"bench-{arm}")

    def environment(self, arm: str, options: Mapping[str, str]) -> dict[str, str]:
        """Return the whole environment of an arm's process.

        `options` are added to Keystone's own; the tables say what stands in braces.
        """
        places = {
            **{name: f"{HOST}:{self._stack.port(name)}" for name in _PORTS},
            "sink": f"http://{HOST}:{self.sink_port}",
        }
        filled = {key: value.format_map(places) for key, value in options.items()}
        site = site_of(self._stack, self.sink_port)
        return site.environment(
            f"bench-{arm}", {**keystone.oslo_variables(site), **filled}
        )

    def forget(self) -> None:
        """Empty the caches."""
        for name, question, end in _FLUSH:
            ask(self._stack.port(name), question, end)

    def cache_calls(self) -> int:
        """Return how many keys Keystone's caches were asked for or told, ever."""
        answers = [ask(self._stack.port(name), *words) for name, *words in _ASK]
        return count_calls("".join(answers))


_PORTS = ("memcached", "redis")


def count_calls(statistics: str) -> int:
    """Add up the calls in memcached's and Redis's own statistics."""
    return sum(int(number) for number in _COUNTED.findall(statistics))


def ask(port: int, question: bytes, end: bytes) -> str:
    """Return a server's answer, which ends with `end`; OSError if it does not."""
    answer = b""
    with socket.create_connection((HOST, port), HEALTH_TIMEOUT_SECONDS) as connection:
        connection.sendall(question)
        while not answer.endswith(end):
            part = connection.recv(65536)
            if not part:
                message = f"port {port} closed the connection"
                raise ConnectionError(message)
            answer += part
    return answer.decode()


def site_of(stack: Stack, endpoint: int) -> ServiceContext:
    """Return the site of a Keystone whose public endpoint nobody calls."""
    ports = {service.name: stack.port(service.name) for service in SERVICES}
    return ServiceContext(
        folder=stack.folder,
        tools=stack.tools,
        options=StackOptions(),
        ports={**ports, "keystone": endpoint},
        secrets=load_secrets(stack.data),
    )


def fill(stack: Stack) -> None:
    """Give Keystone its tables and an administrator whose password is cheap to hash.

    `keystone-manage bootstrap` hashes a password only when it differs from the one
    it finds, so another one goes first.
    """
    site = site_of(stack, stack.port("mariadb"))
    keystone.SERVICE.prepare(site)
    program = stack.tools.keystone / "bin" / "keystone-manage"
    environment = {**keystone.oslo_variables(site), **COMMON}
    for password in (secrets.token_urlsafe(), site.secrets.admin):
        site.run_helper(
            "keystone",
            [program, f"--config-dir={keystone.CONFIG_FOLDER}", "bootstrap"],
            {**environment, "OS_BOOTSTRAP_PASSWORD": password},
        )


def _prepared() -> InitialData:
    lock = (CHECKOUT / "locks" / "bench.txt").read_bytes()
    cost = COMMON["OS_IDENTITY__PASSWORD_HASH_ROUNDS"]
    return InitialData(f"bench {cost} {hashlib.sha256(lock).hexdigest()}", fill)


@contextmanager
def open_servers(sink_port: int, console: Console) -> Iterator[Servers]:
    """Start the servers, and stop them at the end of the block.

    Waits while another benchmark of this checkout runs.  Raises StackError or
    ToolError.
    """
    folder = state_folder()
    interpreter = require_tool(venvs.BENCH, folder / "tools").parents[1]
    stack = Stack(
        folder / "bench",
        replace(Tools.load(), keystone=interpreter),
        StackOptions(),
        initial_data=_prepared(),
        console=console,
        services=SERVICES,
    )
    # Two at a time would measure each other, unless each has its own processor, which
    # nobody here sees to.
    with locked(folder / "bench.lock"):
        stack.down()
        with stack:
            yield Servers(stack, sink_port)

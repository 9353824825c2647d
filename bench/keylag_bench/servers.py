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

from keylag.prepared import Prepared
from keylag.record import load_secrets
from keylag.services import keystone, mariadb, memcached, redis
from keylag.services.base import ANSWER_SECONDS, HOST, Site, StackOptions
from keylag.stack import Stack
from keylag.state import CHECKOUT, locked, state_folder
from keylag.tools import Tools, venvs
from keylag.tools.install import ready
from keylag_bench.arms_and_workloads import COMMON

SERVICES = (mariadb.SERVICE, memcached.SERVICE, redis.SERVICE)

# (server, question, end of the answer); the answer is text.
_FLUSH = (
    ("memcached", b"flush_all\r\n", b"OK\r\n"),
    ("redis", b"FLUSHALL\r\n", b"+OK\r\n"),
)
_STATISTICS = (
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
        site = keystone_site(self._stack, self.sink_port)
        return site.environment(
            f"bench-{arm}", {**keystone.configuration(site), **filled}
        )

    def flush_caches(self) -> None:
        """Empty the caches."""
        for name, question, end in _FLUSH:
            send_command(self._stack.port(name), question, end)

    def cache_calls(self) -> int:
        """Return how many keys Keystone's caches were asked for or told, ever."""
        answers = [
            send_command(self._stack.port(name), *words) for name, *words in _STATISTICS
        ]
        return count_cache_calls("".join(answers))


_PORTS = ("memcached", "redis")


def count_cache_calls(statistics: str) -> int:
    """Add up the calls in memcached's and Redis's own statistics."""
    return sum(int(number) for number in _COUNTED.findall(statistics))


def send_command(port: int, question: bytes, end: bytes) -> str:
    """Return a server's answer, which ends with `end`; OSError if it does not."""
    answer = b""
    with socket.create_connection((HOST, port), ANSWER_SECONDS) as connection:
        connection.sendall(question)
        while not answer.endswith(end):
            part = connection.recv(65536)
            if not part:
                message = f"port {port} closed the connection"
                raise ConnectionError(message)
            answer += part
    return answer.decode()


def keystone_site(stack: Stack, endpoint: int) -> Site:
    """Return the site of a Keystone whose public endpoint nobody calls."""
    ports = {service.name: stack.port(service.name) for service in SERVICES}
    return Site(
        folder=stack.folder,
        tools=stack.tools,
        options=StackOptions(),
        ports={**ports, "keystone": endpoint},
        secrets=load_secrets(stack.data),
    )


def initialise_keystone(stack: Stack) -> None:
    """Give Keystone its tables and an administrator whose password is cheap to hash.

    `keystone-manage bootstrap` hashes a password only when it differs from the one
    it finds, so another one goes first.
    """
    site = keystone_site(stack, stack.port("mariadb"))
    keystone.SERVICE.prepare(site)
    program = stack.tools.keystone / "bin" / "keystone-manage"
    environment = {**keystone.configuration(site), **COMMON}
    for password in (secrets.token_urlsafe(), site.secrets.admin):
        site.once(
            "keystone",
            [program, f"--config-dir={keystone.CONFIG_FOLDER}", "bootstrap"],
            {**environment, "OS_BOOTSTRAP_PASSWORD": password},
        )


def _initial_data() -> Prepared:
    lock = (CHECKOUT / "locks" / "bench.txt").read_bytes()
    cost = COMMON["OS_IDENTITY__PASSWORD_HASH_ROUNDS"]
    return Prepared(
        f"bench {cost} {hashlib.sha256(lock).hexdigest()}", initialise_keystone
    )


@contextmanager
def open_servers(sink_port: int, console: Console) -> Iterator[Servers]:
    """Start the servers, and stop them at the end of the round.

    Waits while another benchmark of this checkout runs.  Raises StackError or
    ToolError.
    """
    folder = state_folder()
    interpreter = ready(venvs.BENCH, folder / "tools").parents[1]
    stack = Stack(
        folder / "bench",
        replace(Tools.load(), keystone=interpreter),
        StackOptions(),
        prepared=_initial_data(),
        console=console,
        services=SERVICES,
    )
    # Two at a time would measure each other, unless each has its own processor, which
    # nobody here sees to.
    with locked(folder / "bench.lock"):
        stack.down()
        with stack:
            yield Servers(stack, sink_port)

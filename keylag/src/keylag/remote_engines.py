"""The engines of a load from several machines: their addresses, and how to reach them.

An engine is a JMeter in server mode: `keylag engine`, or `jmeter-server`.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.errors import KeylagError, WrongUsageError

DEFAULT_PORT: Final = 1099
CONNECT_SECONDS: Final = 3.0
_LAST_PORT: Final = 65_535
_ADDRESS: Final = re.compile(
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[\w.-]+)(:(?P<port>[0-9]{1,5}))?"
)
KEYSTORE: Final = "rmi_keystore.jks"
"""JMeter's own name of the keystore.  Both sides open it in their working folder."""
KEYSTORE_VARIABLE: Final = "KEYLAG_KEYSTORE_PASSWORD"
JMETER_DEFAULT: Final = "changeit"
"""JMeter's own default for the password of the keystore."""
CREATE_KEYSTORE: Final = (
    "keytool -genkeypair -alias rmi -keyalg RSA -keysize 2048 -validity 365 "
    f"-dname CN=keylag -storepass {JMETER_DEFAULT} -keystore"
)
NO_TLS_WARNING: Final = (
    "Without TLS, tokens and passwords travel unencrypted, and whoever reaches an "
    "engine can run code on its machine."
)


class EngineError(KeylagError):
    """An engine does not start, does not answer, or was lost."""


class EngineAddressError(WrongUsageError):
    """The address of an engine, or a keystore, is invalid."""


@dataclass(frozen=True)
class Engine:
    """The address of an engine; its text is the name that JMeter gives its samples."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def connection_error(self) -> str:
        """Return why no connection can be opened; empty if one can."""
        try:
            with socket.create_connection((self.host, self.port), CONNECT_SECONDS):
                return ""
        except OSError as error:
            return error.strerror or str(error)

    def address_towards(self) -> str:
        """Return this machine's address in connections to the engine.

        Raises EngineError if the host is unknown.
        """
        try:
            family, kind, *_, address = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_DGRAM
            )[0]
            with socket.socket(family, kind) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
        except OSError as error:
            message = f"{self}: {error.strerror or error}. Check the name of the host."
            raise EngineError(message) from error


def is_loopback(host: str) -> bool:
    """Return whether a name or an address means this machine only."""
    with suppress(OSError, ValueError):
        address = socket.getaddrinfo(host, None)[0][4][0]
        return ipaddress.ip_address(address).is_loopback
    return False


def parse_engine(text: str) -> Engine:
    """Parse HOST or HOST:PORT; raises EngineAddressError."""
    found = _ADDRESS.fullmatch(text.strip())
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found and 0 < port <= _LAST_PORT:
        return Engine(found["host"].strip("[]"), port)
    message = f"{text or 'empty'} is no address of an engine. Use HOST or HOST:PORT."
    raise EngineAddressError(message)


def parse_engines(text: str) -> tuple[Engine, ...]:
    """Parse addresses with commas between them; raises EngineAddressError."""
    engines = tuple(map(parse_engine, text.split(",")))
    if len(set(engines)) < len(engines):
        message = f"{text} names an engine twice. Each engine has its own HOST:PORT."
        raise EngineAddressError(message)
    return engines


def require_reachable(engines: Sequence[Engine]) -> None:
    """Raise EngineError, with one line for each engine that does not answer."""
    wrong = [(one, error) for one in engines if (error := one.connection_error())]
    if wrong:
        lines = [f"Engine {one} does not answer: {error}." for one, error in wrong]
        advice = (
            f"Start it on its machine with `keylag engine --listen {wrong[0][0]} "
            "--users FILE`, and let this machine reach that port and the next one."
        )
        raise EngineError("\n".join([*lines, advice]))


@dataclass(frozen=True)
class Access:
    """How controller and engines trust each other: by a common keystore, or not."""

    keystore: Path | None
    """None without TLS."""

    def require_keystore(self) -> None:
        """Raise EngineAddressError if the keystore does not exist."""
        if self.keystore and not self.keystore.is_file():
            message = (
                f"The keystore {self.keystore} does not exist. Create one with "
                f"`{CREATE_KEYSTORE} {self.keystore}` and copy it to all machines, or "
                "name it with --keystore FILE. --no-tls works without one."
            )
            raise EngineAddressError(message)

    def private_properties(self, folder: Path) -> dict[str, str]:
        """Return JMeter's properties; `folder`, its working folder, gets a link.

        An engine tells the controller the path of its keystore, so that the path has
        to be the same on all machines: a name in the working folder.
        """
        if self.keystore is None:
            return {"server.rmi.ssl.disable": "true"}
        (folder / KEYSTORE).symlink_to(self.keystore.resolve())
        password = os.environ.get(KEYSTORE_VARIABLE) or JMETER_DEFAULT
        return {
            "server.rmi.ssl.keystore.file": KEYSTORE,
            "server.rmi.ssl.keystore.password": password,
        }


def controller_address(engines: Sequence[Engine]) -> str:
    """Return the address at which the engines reach this machine.

    JMeter has one for all engines: one of a network, if any engine needs that.
    """
    addresses = [engine.address_towards() for engine in engines]
    return next((one for one in addresses if not is_loopback(one)), addresses[0])


def engine_of(thread: str, engines: Sequence[Engine]) -> Engine | None:
    """Return the engine that names a thread; None for none of them."""
    return next((one for one in engines if thread.startswith(f"{one}-")), None)

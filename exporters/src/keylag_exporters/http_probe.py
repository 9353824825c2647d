"""Requests a URL once, over a new connection, and times each phase.

All steps share one deadline. A server that never answers, sends a byte a second, or
never stops sending therefore ends like any other.
"""

from __future__ import annotations

import io
import re
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from http.client import BadStatusLine, HTTPException, HTTPResponse, IncompleteRead
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from keylag_exporters.settings import tls_context

if TYPE_CHECKING:
    from collections.abc import Mapping

PHASES = ("resolve", "connect", "tls", "processing", "transfer")
"""What a probe does, in its order, by the names of blackbox_exporter."""
STATUS = "status"
"""Where a probe fails whose response is complete, with a status other than 2xx."""
PORTS = {"http": 80, "https": 443}
MAX_RESPONSE_BYTES = 1 << 20
READ_BYTES = 1 << 16
MAX_REASON = 200
SUCCESS = range(200, 300)
REQUEST = (
    "GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: keylag-probe\r\n"
    "Accept: application/json\r\nConnection: close\r\n\r\n"
)

Address = tuple[Any, ...]
"""Family, type, protocol, name and address, as getaddrinfo returns them."""


@dataclass(frozen=True)
class ProbeResult:
    """One probe: seconds of the phases that it began, and where it failed."""

    seconds: Mapping[str, float]
    status: int
    """Of the response; 0 without one."""
    failed_phase: str
    """One of PHASES, `status`, or empty after a success."""
    reason: str
    """Why it failed; empty after a success."""

    @property
    def total_seconds(self) -> float:
        """Time of all phases together."""
        return sum(self.seconds.values())


def parse_url(text: str) -> str:
    """Return an http or https URL; raises ValueError for any other text."""
    try:
        parts = urlsplit(text)
        known = parts.scheme in PORTS and bool(parts.hostname and parts.port != 0)
        (parts.hostname or "").encode("idna")
    except ValueError:
        known = False
    if not known or re.search(r"[^!-~]", text):
        message = f"a URL is such as http://keystone:5000/v3, not {text}"
        raise ValueError(message)
    if parts.username is not None:
        message = "the URL of a probe has no user and password"
        raise ValueError(message)
    return text


class HttpProbe:
    """Asks one URL; each probe ends within `timeout` seconds.

    `tls_ca` is a file with CA certificates; the default are those of the system.
    Raises SettingsError if it cannot be read.
    """

    def __init__(self, url: str, timeout: float, tls_ca: str | None = None) -> None:
        self._url: SplitResult = urlsplit(url)
        self._timeout = timeout
        self._tls = (
            tls_context(tls_ca) or ssl.create_default_context()
            if self._url.scheme == "https"
            else None
        )

    def run(self) -> ProbeResult:
        """Probe once; a failure is a result too."""
        clock = _PhaseClock(self._timeout)
        failed_phase = reason = ""
        try:
            self._request(clock)
        except (OSError, HTTPException) as error:
            failed_phase = clock.phase
            reason = _describe(error, self._timeout)
        clock.stop()
        if not failed_phase and clock.status not in SUCCESS:
            failed_phase = STATUS
            reason = f"the response has status {clock.status}"
        return ProbeResult(clock.seconds, clock.status, failed_phase, reason)

    def _request(self, clock: _PhaseClock) -> None:
        """Read a complete response; its status, which comes first, is the clock's."""
        host = self._url.hostname or ""
        clock.start("resolve")
        port = self._url.port or PORTS[self._url.scheme]
        addresses, look_up_seconds = _resolve(host, port, clock)
        clock.start("connect")
        clock.seconds["resolve"] = look_up_seconds
        with _connect(addresses, clock) as connection:
            if self._tls is None:
                self._exchange(connection, clock)
                return
            clock.start("tls")
            connection.settimeout(clock.seconds_left())
            with self._tls.wrap_socket(connection, server_hostname=host) as encrypted:
                self._exchange(encrypted, clock)

    def _exchange(self, connection: socket.socket, clock: _PhaseClock) -> None:
        clock.start("processing")
        connection.settimeout(clock.seconds_left())
        target = self._url._replace(scheme="", netloc="", fragment="").geturl() or "/"
        request = REQUEST.format(target=target, host=self._url.netloc)
        connection.sendall(request.encode())
        received: Any = _Received(connection, clock)
        response = HTTPResponse(received, method="GET")
        response.begin()
        clock.status = response.status
        while response.read(READ_BYTES):
            pass
        if response.length:
            raise IncompleteRead(partial=b"", expected=response.length)


class _PhaseClock:
    """The seconds of each phase, the status, and what is left until the deadline."""

    def __init__(self, timeout: float) -> None:
        self.phase = ""
        self.status = 0
        self.seconds: dict[str, float] = {}
        self._started = time.perf_counter()
        self._deadline = self._started + timeout

    def start(self, phase: str) -> None:
        """End the current phase and start another."""
        self.stop()
        self.phase = phase

    def stop(self) -> None:
        """End the current phase."""
        now = time.perf_counter()
        if self.phase:
            self.seconds[self.phase] = now - self._started
        self._started = now

    def seconds_left(self) -> float:
        """Return the time until the deadline; raises TimeoutError after it."""
        left = self._deadline - time.perf_counter()
        if left <= 0:
            raise TimeoutError
        return left


class _Received(io.RawIOBase):
    """What a connection receives until the deadline, as HTTPResponse reads it."""

    def __init__(self, connection: socket.socket, clock: _PhaseClock) -> None:
        self._connection = connection
        self._clock = clock
        self._bytes = 0

    def makefile(self, _: str) -> io.BufferedReader:
        """Return a file to read from, as sockets do."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return whether it is readable: always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive some bytes; the first ones start the phase `transfer`."""
        self._connection.settimeout(self._clock.seconds_left())
        count = self._connection.recv_into(buffer)
        if not self._bytes and count:
            self._clock.start("transfer")
        self._bytes += count
        if self._bytes > MAX_RESPONSE_BYTES:
            message = f"the response is longer than {MAX_RESPONSE_BYTES} bytes"
            raise HTTPException(message)
        return count


def _resolve(host: str, port: int, clock: _PhaseClock) -> tuple[list[Address], float]:
    """Return the addresses of a host, and the time of the look-up.

    Names are looked up in a thread, because the resolver has only its own timeout. The
    start of the thread does not count: it takes milliseconds on a busy host.
    """
    with suppress(socket.gaierror):
        return _look_up(host, port, socket.AI_NUMERICHOST)
    answers: SimpleQueue[tuple[list[Address], float] | OSError] = SimpleQueue()

    def answer() -> None:
        try:
            answers.put(_look_up(host, port))
        except OSError as error:
            answers.put(error)

    threading.Thread(target=answer, name="resolve", daemon=True).start()
    try:
        found = answers.get(timeout=clock.seconds_left())
    except Empty:
        raise TimeoutError from None
    if isinstance(found, OSError):
        raise found
    return found


def _look_up(host: str, port: int, flags: int = 0) -> tuple[list[Address], float]:
    started = time.perf_counter()
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return list(found), time.perf_counter() - started


def _connect(addresses: list[Address], clock: _PhaseClock) -> socket.socket:
    """Return a connection to the first address that accepts one."""
    failure: OSError = OSError("the name has no address")
    for family, kind, protocol, _, address in addresses:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(clock.seconds_left())
            connection.connect(address)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure


def _describe(error: Exception, timeout: float) -> str:
    """Return the reason of a failure as a short phrase."""
    if isinstance(error, TimeoutError):
        return f"no end within {timeout:g} seconds"
    if isinstance(error, BadStatusLine) and not isinstance(error, OSError):
        return f"this is no HTTP response: {error!s:.60}"
    if isinstance(error, IncompleteRead):
        return "the response is cut off"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text)[:MAX_REASON]

"""A TCP relay that delays, stalls, refuses or limits what passes."""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from keylag.faults.helpers.host import Host, ready

CHUNK_BYTES: Final = 1 << 18
RETRY_SECONDS: Final = 0.02
BACKLOG: Final = 1024


@dataclass(frozen=True)
class Manner:
    """How a relay passes bytes on; the defaults change nothing."""

    delay_ms: float = 0.0
    """Delay of each direction; what follows within it is in flight too."""
    stall_after: int = -1
    """Bytes of a connection from the client after which nothing passes; -1: never."""
    refuse: bool = False
    """Close each connection at once."""
    bytes_per_second: float = 0.0
    """Bandwidth of each direction of a connection; 0 is unlimited."""


class Relay:
    """Passes the bytes of each connection to an upstream server, and back."""

    def __init__(self, upstream: str, manner: Manner) -> None:
        self._host, _, port = upstream.partition(":")
        self._port = int(port)
        self._manner = manner
        self._connections: set[asyncio.Task[None] | None] = set()

    async def serve(self, listen: str, *, patient: bool = False) -> asyncio.Server:
        """Listen; `patient` waits until another process has left the port."""
        host, _, port = listen.partition(":")
        while True:
            try:
                return await asyncio.start_server(
                    self._accept, host, int(port), backlog=BACKLOG
                )
            except OSError:
                if not patient:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # The loop holds tasks weakly: a garbage collection would end the connection.
        task = asyncio.current_task()
        self._connections.add(task)
        try:
            await self._relay(reader, writer)
        finally:
            self._connections.discard(task)

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._manner.refuse:
            writer.transport.abort()
            return
        try:
            # A round trip of the handshake.
            await asyncio.sleep(2 * self._manner.delay_ms / 1000)
            upstream = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.transport.abort()
            return
        up = _Direction(reader, upstream[1], self._manner, self._manner.stall_after)
        down = _Direction(upstream[0], writer, self._manner, -1)
        await asyncio.gather(up.run(), down.run())
        for one in (writer, upstream[1]):
            one.close()


class _Direction:
    """One direction of a connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        manner: Manner,
        stall_after: int,
    ) -> None:
        self._reader, self._writer, self._manner = reader, writer, manner
        self._left = stall_after
        self._in_flight: deque[tuple[float, bytes]] = deque()
        self._arrived = asyncio.Event()
        self._delay = manner.delay_ms / 1000

    async def run(self) -> None:
        """Pass bytes and then the end of the stream."""
        with suppress(OSError):
            if self._delay:
                await asyncio.gather(self._receive(), self._deliver())
            else:
                await self._pass_on()
        with suppress(OSError):
            self._writer.write_eof()

    async def _pass_on(self) -> None:
        while chunk := await self._read():
            await self._write(chunk)

    async def _receive(self) -> None:
        clock = asyncio.get_running_loop().time
        chunk = b"more"
        while chunk:
            try:
                chunk = await self._read()
            except OSError:
                chunk = b""
            self._in_flight.append((clock() + self._delay, chunk))
            self._arrived.set()

    async def _deliver(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            while not self._in_flight:
                self._arrived.clear()
                await self._arrived.wait()
            due, chunk = self._in_flight.popleft()
            await asyncio.sleep(due - clock())
            if not chunk:
                return
            await self._write(chunk)

    async def _read(self) -> bytes:
        chunk = await self._reader.read(CHUNK_BYTES)
        if self._left >= 0:
            passed, self._left = chunk[: self._left], self._left - len(chunk)
            if self._left < 0:
                if passed:
                    await self._write(passed)
                # The connection stays open and silent.
                await asyncio.Event().wait()
        return chunk

    async def _write(self, chunk: bytes) -> None:
        self._writer.write(chunk)
        await self._writer.drain()
        if self._manner.bytes_per_second:
            await asyncio.sleep(len(chunk) / self._manner.bytes_per_second)


def run(  # noqa: PLR0913 - all but three have defaults
    _: Host,
    listen: str,
    upstream: str,
    *,
    patient: bool = False,
    delay_ms: float = 0.0,
    stall_after: int = -1,
    refuse: bool = False,
    bytes_per_second: float = 0.0,
) -> None:
    """Relay connections until the process ends."""
    manner = Manner(delay_ms, stall_after, refuse, bytes_per_second)

    async def forever() -> None:
        if patient:
            ready()
        server = await Relay(upstream, manner).serve(listen, patient=patient)
        ready()
        await server.serve_forever()

    asyncio.run(forever())

"""The relay that faults put before a server."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from keylag.faults.helpers.relay import Manner, Relay
from keylag.ports import free_port

DELAY_MS = 40
DELAY_SECONDS = DELAY_MS / 1000
MEGABYTES = 32
SLOWEST_SECONDS = 5
"""A relay that loses a few milliseconds in each chunk or round trip takes longer."""

Work = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)

    def eof_received(self) -> None:
        # A connection whose client has ended its side must survive this.
        gc.collect()


async def _start_echo(port: int = 0) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    return await loop.create_server(_Echo, "127.0.0.1", port)


def _port(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


@asynccontextmanager
async def _relay(manner: Manner) -> AsyncIterator[int]:
    """An echo server behind a relay; yields the port of the relay."""
    async with await _start_echo() as echo:
        relay = Relay(f"127.0.0.1:{_port(echo)}", manner)
        async with await relay.serve("127.0.0.1:0") as server:
            yield _port(server)


def through(manner: Manner, work: Work) -> float:
    """Do some work on a connection through a relay; return its seconds."""

    async def run() -> float:
        async with _relay(manner) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            started = time.monotonic()
            await work(reader, writer)
            seconds = time.monotonic() - started
            writer.close()
            return seconds

    return asyncio.run(run())


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes = b"ping"
) -> None:
    writer.write(data)
    assert await reader.readexactly(len(data)) == data


def test_each_direction_is_delayed() -> None:
    connect_and_round_trip = through(Manner(delay_ms=DELAY_MS), _exchange)

    assert connect_and_round_trip >= 4 * DELAY_SECONDS


def test_a_delay_is_no_limit_of_the_bandwidth() -> None:
    """Chunks are in flight at the same time."""
    chunks = [bytes([number]) * 1000 for number in range(100)]

    async def send_chunks(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(0.001)
        assert await reader.readexactly(100_000) == b"".join(chunks)

    seconds = through(Manner(delay_ms=DELAY_MS), send_chunks)

    assert seconds < len(chunks) * DELAY_SECONDS


def test_without_delay_bytes_and_round_trips_are_fast() -> None:
    async def transfer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        megabyte = b"x" * (1 << 20)
        for _ in range(MEGABYTES):
            await asyncio.gather(_exchange(reader, writer, megabyte))
        for _ in range(1000):
            await _exchange(reader, writer)

    assert through(Manner(), transfer) < SLOWEST_SECONDS


def test_a_connection_stalls_after_its_bytes() -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"0123456789")
        assert await reader.readexactly(4) == b"0123"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.2)

    through(Manner(stall_after=4), stall)


def test_a_refusing_relay_closes_connections() -> None:
    async def refused(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await _exchange(reader, writer)

    through(Manner(refuse=True), refused)


def test_bandwidth_is_limited() -> None:
    async def transfer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await _exchange(reader, writer, b"x" * 20_000)
        await _exchange(reader, writer)

    # The pause after what was sent delays what follows.
    assert through(Manner(bytes_per_second=100_000), transfer) >= 0.2


def test_the_end_of_a_stream_passes() -> None:
    async def half_close(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(b"last")
        writer.write_eof()
        assert await reader.read(-1) == b"last"

    through(Manner(), half_close)


def test_a_patient_relay_takes_a_port_that_another_process_leaves() -> None:
    async def run() -> None:
        port = free_port(())
        before = await _start_echo(port)
        async with await _start_echo() as moved:
            relay = Relay(f"127.0.0.1:{_port(moved)}", Manner())
            waiting = asyncio.create_task(
                relay.serve(f"127.0.0.1:{port}", patient=True)
            )
            await asyncio.sleep(0.1)
            assert not waiting.done()
            before.close()
            async with await asyncio.wait_for(waiting, 5):
                await _exchange(*await asyncio.open_connection("127.0.0.1", port))

    asyncio.run(run())

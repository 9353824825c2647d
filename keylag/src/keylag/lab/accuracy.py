"""Measures what a link does to packets: round trip, handshake and throughput."""

import json
import math
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from keylag.lab.direction import BITS_PER_BYTE
from keylag.lab.iproute import LabError, command_in, read_counters, run
from keylag.lab.link import Link
from keylag.lab.network import WAN_INTERFACE, Host, Network
from keylag.tools.programs import find_program

PINGS: Final = 40
PING_INTERVAL_SECONDS: Final = 0.05
HANDSHAKES: Final = 20
SETTLE_SECONDS: Final = 1.0
"""Before a measurement, beside what is on its way or waits when the link changes."""
TRANSFER_SECONDS: Final = 5
WARM_UP_SECONDS: Final = 2
"""Of a transfer, in which the queue of the link fills."""
SURPLUS: Final = 1.3
"""How much more is sent than the link carries."""
PAYLOAD_BYTES: Final = 1400
PORT: Final = 5201
HANDSHAKE: Final[Sequence[str]] = (sys.executable, "-m", "keylag.lab.handshake")
SERVER: Final[Sequence[str]] = ("iperf3", "--server", "--port", str(PORT))
RELATIVE_TOLERANCE: Final = 0.02
TOLERANCE_SECONDS: Final = 0.001
ADVICE: Final = "Run `keylag setup --with labs` to install it."
PROGRAMS: Final = ("ping", "iperf3")


@dataclass(frozen=True)
class Figure:
    """A figure of a link: as it was set, and as it was measured."""

    name: str
    expected: float
    measured: float
    tolerance: float

    @property
    def is_accurate(self) -> bool:
        """Whether both differ by no more than the tolerance."""
        return abs(self.measured - self.expected) <= self.tolerance


def measure(network: Network, link: Link) -> list[Figure]:
    """Measure the link between the first hosts of both sites, in some 20 s.

    Without a rate, no throughput is expected, so it is left out.  Raises LabError, or
    ToolError if a program is missing.
    """
    for program in PROGRAMS:
        find_program(program, ADVICE)
    near, far = (site.hosts[0] for site in network.sites)
    round_trip = link.round_trip_seconds
    time.sleep(SETTLE_SECONDS + 2 * link.queue_seconds)
    figures = [
        Figure(name, round_trip, measured(near, far), _tolerance(link, count))
        for name, measured, count in (
            ("ping, s", _ping_seconds, PINGS),
            ("TCP handshake, s", _handshake_seconds, HANDSHAKES),
        )
    ]
    if rate := link.rate_bits_per_second:
        found = _bits_per_second(network, link)
        tolerance = RELATIVE_TOLERANCE * rate
        figures.append(Figure("throughput, bit/s", rate, found, tolerance))
    return figures


def _tolerance(link: Link, count: int) -> float:
    """Return by how much the mean of some round trips may differ.

    Jitter alone makes it differ by its standard error, of which this has some 2.5.
    """
    allowed = max(TOLERANCE_SECONDS, RELATIVE_TOLERANCE * link.round_trip_seconds)
    return allowed + link.jitter_seconds / math.sqrt(count)


def _ping_seconds(near: Host, far: Host) -> float:
    """Return the mean round trip; raises LabError if no ping is answered."""
    ping = ["ping", "-n", "-q", "-c", str(PINGS), "-i", str(PING_INTERVAL_SECONDS)]
    try:
        told = run(*command_in(near.namespace, [*ping, far.address]))
    except LabError as error:
        # Without an answer, ping prints no reason.
        message = f"No ping from {near.name} to {far.name} was answered: {error}"
        raise LabError(message) from error
    (mean,) = re.findall(r"= [\d.]+/([\d.]+)/", told)
    return float(mean) / 1000


def _handshake_seconds(near: Host, far: Host) -> float:
    """Return the median time until a TCP connection is open; raises LabError.

    A lost packet delays a handshake by a second, so the mean would say little.
    """
    with _running(far, [*HANDSHAKE, far.address, str(PORT)]):
        return statistics.median(_handshakes(near, far, HANDSHAKES))


def _handshakes(near: Host, far: Host, count: int) -> list[float]:
    """Wait until a server listens, and return the seconds of handshakes with it."""
    connect = [*HANDSHAKE, far.address, str(PORT), str(count)]
    found: list[float] = json.loads(run(*command_in(near.namespace, connect)))
    return found


def _bits_per_second(network: Network, link: Link) -> float:
    """Return what arrives at the far router if more is sent than the link carries.

    Raises LabError.
    """
    near, far = (site.hosts[0] for site in network.sites)
    send = [
        *("iperf3", "--client", far.address, "--port", str(PORT), "--time", "0"),
        *("--udp", "--length", str(PAYLOAD_BYTES)),
        *("--bitrate", f"{SURPLUS * link.rate_bits_per_second:.0f}"),
    ]
    router = network.sites[1].router
    with _running(far, SERVER):
        _handshakes(near, far, 0)
        with _running(near, send):
            # iperf3 exchanges some messages before it sends.
            time.sleep(WARM_UP_SECONDS + 10 * link.round_trip_seconds)
            begun, before = time.monotonic(), _received_bytes(router)
            time.sleep(TRANSFER_SECONDS)
            ended, after = time.monotonic(), _received_bytes(router)
    return (after - before) * BITS_PER_BYTE / (ended - begun)


def _received_bytes(router: Host) -> int:
    found: int = read_counters(router.namespace, WAN_INTERFACE)["rx"]["bytes"]
    return found


@contextmanager
def _running(host: Host, command: Sequence[str]) -> Iterator[None]:
    """Run a program on a host while the body runs."""
    process = subprocess.Popen(
        command_in(host.namespace, command),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()

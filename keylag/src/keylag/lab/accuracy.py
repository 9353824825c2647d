"""Measures what a link does to packets.

These are round trip, TCP handshake, jitter, loss and throughput.
"""

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
from keylag.tools.programs import LABS_ADVICE, find_program

PINGS: Final = 40
JITTER_PINGS: Final = 400
"""Enough for the mean and the standard deviation of round trips."""
PING_INTERVAL_SECONDS: Final = 0.05
LOSS_PINGS: Final = 5000
LOSS_PING_SECONDS: Final = 0.002
LOSS_PING_BYTES: Final = 1
LOSS_PING_BITS: Final = 29 * BITS_PER_BYTE
"""Of a ping of one byte with its headers."""
STANDARD_ERRORS: Final = 2.5
"""By which a figure of random packets may differ: by more once in 80 times."""
HANDSHAKES: Final = 20
JITTER_HANDSHAKES: Final = 400
"""Their median has a standard error of a fortieth of the jitter."""
RETRANSMISSION_SECONDS: Final = 1.0
"""After which a lost packet of a handshake is sent again."""
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
PROGRAMS: Final = ("ping", "iperf3")
PING: Final = "ping, s"
HANDSHAKE_TIME: Final = "TCP handshake, s"
JITTER: Final = "jitter, s"
LOSS: Final = "lost packets, ratio"
THROUGHPUT: Final = "throughput, bit/s"
RTT: Final = r"= [\d.]+/([\d.]+)/[\d.]+/([\d.]+) ms"
"""Mean and standard deviation in ping's summary."""
PACKETS: Final = r"(\d+) packets transmitted, (\d+) received"
BOUND_OF_DEVIATION: Final = math.sqrt(6)
"""The jitter is that many standard deviations: each direction is evenly distributed."""
DEVIATION_VARIANCE: Final = 0.35
"""Relative variance of the standard deviation of one such round trip."""


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
    """Measure the link between the first hosts of both sites, in some 20 s to 2 min.

    Jitter, loss and throughput are measured where the link has a setting for them.
    Raises LabError, or ToolError if a program is missing.
    """
    for program in PROGRAMS:
        find_program(program, LABS_ADVICE)
    time.sleep(SETTLE_SECONDS + 2 * link.queue_seconds)
    figures = [*_round_trips(network, link), _handshake(network, link)]
    if link.loss_ratio:
        figures.append(_loss(network, link))
    if rate := link.rate_bits_per_second:
        found = _bits_per_second(network, link)
        figures.append(Figure(THROUGHPUT, rate, found, RELATIVE_TOLERANCE * rate))
    return figures


def _round_trips(network: Network, link: Link) -> Iterator[Figure]:
    """Yield the mean round trip and its jitter, if there is one."""
    jitter = link.jitter_seconds
    count = JITTER_PINGS if jitter else PINGS
    # The relay keeps the order of packets: with less, one waits for that before it.
    interval = max(PING_INTERVAL_SECONDS, jitter)
    told = _ping(network, count, interval)
    mean, deviation = (float(one) / 1000 for one in re.findall(RTT, told)[0])
    yield Figure(PING, link.round_trip_seconds, mean, _tolerance(link, count))
    if jitter:
        error = STANDARD_ERRORS * math.sqrt(DEVIATION_VARIANCE / count)
        found = deviation * BOUND_OF_DEVIATION
        yield Figure(JITTER, jitter, found, _allowed(jitter) + error * jitter)


def _tolerance(link: Link, count: int) -> float:
    """Return by how much the mean of some round trips may differ."""
    deviation = link.jitter_seconds / BOUND_OF_DEVIATION
    error = STANDARD_ERRORS * deviation / math.sqrt(count)
    return _allowed(link.round_trip_seconds) + error


def _allowed(seconds: float) -> float:
    return max(TOLERANCE_SECONDS, RELATIVE_TOLERANCE * seconds)


def _loss(network: Network, link: Link) -> Figure:
    """Return the share of packets that a direction loses, by pings that come back."""
    lost = link.loss_ratio
    rate = link.rate_bits_per_second
    interval = max(LOSS_PING_SECONDS, 2 * LOSS_PING_BITS / rate if rate else 0.0)
    told = _ping(network, LOSS_PINGS, interval, f"-s{LOSS_PING_BYTES}")
    sent, answered = (int(one) for one in re.findall(PACKETS, told)[0])
    both = (1 - lost) ** 2
    error = math.sqrt(both * (1 - both) / LOSS_PINGS) / (2 * (1 - lost))
    tolerance = RELATIVE_TOLERANCE * lost + STANDARD_ERRORS * error
    return Figure(LOSS, lost, 1 - math.sqrt(answered / sent), tolerance)


def _ping(network: Network, count: int, seconds: float, *options: str) -> str:
    """Return what ping tells; raises LabError if no ping is answered."""
    near, far = (site.hosts[0] for site in network.sites)
    ping = ["ping", "-n", "-q", f"-c{count}", f"-i{seconds:.3f}", *options]
    try:
        return run(*command_in(near.namespace, [*ping, far.address]))
    except LabError as error:
        # Without an answer, ping prints no reason.
        message = f"No ping from {near.name} to {far.name} was answered: {error}"
        raise LabError(message) from error


def _handshake(network: Network, link: Link) -> Figure:
    """Return the median time until a TCP connection is open; raises LabError."""
    near, far = (site.hosts[0] for site in network.sites)
    count = JITTER_HANDSHAKES if link.jitter_seconds else HANDSHAKES
    with _running(far, [*HANDSHAKE, far.address, str(PORT)]):
        found = median_without_losses(_handshakes(near, far, count))
    allowed = _tolerance(link, count)
    return Figure(HANDSHAKE_TIME, link.round_trip_seconds, found, allowed)


def median_without_losses(handshakes: Sequence[float]) -> float:
    """Return the median of the handshakes that lost no packet, in seconds.

    They are shorter than RETRANSMISSION_SECONDS, as each round trip is.  If all are
    longer, the median is that of all.
    """
    whole = [one for one in handshakes if one < RETRANSMISSION_SECONDS]
    return statistics.median(whole or handshakes)


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

"""One direction of a link: which packets leave it, and when."""

import math
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Final

from keylag.lab.link import Link

BITS_PER_BYTE: Final = 8
IN_FLIGHT_BYTES: Final = 1 << 26
"""Limit of what is on its way, in case that nobody controls what is sent."""


class Direction:
    """Packets on their way; they arrive in the order in which they were sent.

    Times are seconds of a clock that the caller chooses.
    """

    def __init__(self, link: Link, random: Random) -> None:
        self._link = link
        self._random = random
        self._in_flight: deque[tuple[float, bytes]] = deque()
        self._in_flight_bytes = 0
        self._free_at = -math.inf
        self._last_arrival = -math.inf

    def change(self, link: Link) -> None:
        """Change what is sent from then on, which does not wait for what was sent."""
        self._link = link
        self._free_at = -math.inf

    def send(self, packet: bytes, now: float) -> None:
        """Send a packet, which is lost or dropped, or arrives later."""
        link = self._link
        if link.loss_ratio and self._random.random() < link.loss_ratio:
            return
        if self._in_flight_bytes + len(packet) > IN_FLIGHT_BYTES:
            return
        sent = now
        if link.rate_bits_per_second:
            begins = max(now, self._free_at)
            if begins - now > link.queue_seconds:
                return
            seconds = len(packet) * BITS_PER_BYTE / link.rate_bits_per_second
            sent = self._free_at = begins + seconds
        arrival = max(sent + self._delay(), self._last_arrival)
        self._last_arrival = arrival
        self._in_flight.append((arrival, packet))
        self._in_flight_bytes += len(packet)

    def _delay(self) -> float:
        jitter = self._link.jitter_seconds / 2
        varied = self._random.uniform(-jitter, jitter) if jitter else 0.0
        return self._link.delay_seconds + varied

    def arrived(self, now: float) -> Iterator[bytes]:
        """Yield the packets that have arrived, and forget them."""
        while self._in_flight and self._in_flight[0][0] <= now:
            _, packet = self._in_flight.popleft()
            self._in_flight_bytes -= len(packet)
            yield packet

    @property
    def next_arrival(self) -> float:
        """When the next packet arrives; infinity if none is on its way."""
        return self._in_flight[0][0] if self._in_flight else math.inf

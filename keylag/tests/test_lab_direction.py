"""Packets on one direction of a link, with a clock of the test's own."""

from random import Random

import pytest

from keylag.lab import direction as direction_module
from keylag.lab.direction import Direction
from keylag.lab.link import Link

PACKET = bytes(1500)
PACKET_SECONDS = 1500 * 8 / 6e6
"""How long a link with 6 Mbit/s sends a packet."""


def direction(**settings: float) -> Direction:
    """Return a direction whose chances are the same in each run."""
    return Direction(Link(**settings), Random(7))  # noqa: S311 - repeats


def arrivals(one: Direction) -> list[float]:
    """Return when all packets on their way arrive."""
    found = []
    while (at := one.next_arrival) < float("inf"):
        found += [at] * len(list(one.arrived(at)))
    return found


def test_a_packet_arrives_after_half_of_the_round_trip() -> None:
    one = direction(round_trip_seconds=0.2)

    one.send(PACKET, 5.0)

    assert list(one.arrived(5.0999)) == []
    assert one.next_arrival == pytest.approx(5.1)
    assert list(one.arrived(5.1001)) == [PACKET]
    assert one.next_arrival == float("inf")


def test_packets_arrive_in_their_order_in_spite_of_jitter() -> None:
    one = direction(round_trip_seconds=0.2, jitter_seconds=0.1)
    packets = [number.to_bytes(2, "big") for number in range(200)]

    for number, packet in enumerate(packets):
        one.send(packet, number / 1000)

    assert list(one.arrived(10.0)) == packets


def test_jitter_varies_each_direction_evenly_by_half_of_it() -> None:
    one = direction(round_trip_seconds=0.2, jitter_seconds=0.1)
    delays = []
    for second in range(1000):
        one.send(PACKET, second)
        delays.append(one.next_arrival - second)
        list(one.arrived(second + 1))

    assert min(delays) == pytest.approx(0.05, abs=0.001)
    assert max(delays) == pytest.approx(0.15, abs=0.001)
    assert sum(delays) / len(delays) == pytest.approx(0.1, rel=0.02)


def test_a_rate_sends_packets_one_after_the_other() -> None:
    one = direction(rate_bits_per_second=6e6)

    for _ in range(3):
        one.send(PACKET, 1.0)

    expected = [1 + PACKET_SECONDS * number for number in (1, 2, 3)]
    assert arrivals(one) == pytest.approx(expected)


def test_a_link_that_was_idle_sends_at_once() -> None:
    one = direction(rate_bits_per_second=6e6)
    one.send(PACKET, 1.0)

    one.send(PACKET, 9.0)

    assert arrivals(one)[-1] == pytest.approx(9 + PACKET_SECONDS)


def test_a_full_queue_drops_packets() -> None:
    one = direction(round_trip_seconds=0.2, rate_bits_per_second=6e6)

    for _ in range(1000):
        one.send(PACKET, 0.0)

    # One packet begins when the queue of one round trip is all but full.
    assert len(arrivals(one)) == pytest.approx(0.2 / PACKET_SECONDS, abs=2)


@pytest.mark.parametrize(("ratio", "expected"), [(0.0, 0), (0.1, 1000), (1.0, 10_000)])
def test_a_share_of_the_packets_is_lost(ratio: float, expected: int) -> None:
    one = direction(loss_ratio=ratio)

    for _ in range(10_000):
        one.send(PACKET, 0.0)

    assert 10_000 - len(arrivals(one)) == pytest.approx(expected, rel=0.1)


def test_a_changed_link_is_for_what_is_sent_from_then_on() -> None:
    one = direction(round_trip_seconds=0.2)
    one.send(PACKET, 0.0)

    one.change(Link(round_trip_seconds=0.4))
    one.send(PACKET, 0.0)

    assert arrivals(one) == pytest.approx([0.1, 0.2])


def test_a_shorter_link_keeps_the_order() -> None:
    one = direction(round_trip_seconds=0.4)
    one.send(b"first", 0.0)

    one.change(Link())
    one.send(b"second", 0.1)

    assert list(one.arrived(0.2)) == [b"first", b"second"]


def test_a_faster_link_does_not_wait_for_the_queue_of_a_slow_one() -> None:
    one = direction(round_trip_seconds=5.0, rate_bits_per_second=8000)
    for _ in range(3):
        one.send(PACKET, 0.0)

    one.change(Link(round_trip_seconds=0.2, rate_bits_per_second=6e6))
    one.send(PACKET, 1.0)

    assert len(arrivals(one)) == 4


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direction_module, "IN_FLIGHT_BYTES", 10 * len(PACKET))
    one = direction(round_trip_seconds=1.0)

    for _ in range(50):
        one.send(PACKET, 0.0)
    dropped = 50 - len(list(one.arrived(1.0)))
    one.send(PACKET, 2.0)

    assert dropped == 40
    assert arrivals(one) == [2.5]

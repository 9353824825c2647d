"""The settings of the link between two sites, and how users write them."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from keylag.errors import WrongUsageError

LONGEST_SECONDS: Final = 10.0
LEAST_QUEUE_SECONDS: Final = 0.1
SLOWEST_BITS_PER_SECOND: Final = 8000.0
DURATION_UNITS: Final[Mapping[str, float]] = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
RATE_UNITS: Final[Mapping[str, float]] = {
    "bit": 1.0,
    "kbit": 1e3,
    "mbit": 1e6,
    "gbit": 1e9,
}
UNLIMITED: Final = "unlimited"


@dataclass(frozen=True)
class Link:
    """How a link carries packets; both directions are alike.

    The defaults change nothing.  Raises WrongUsageError if a value is out of range.
    """

    round_trip_seconds: float = 0.0
    jitter_seconds: float = 0.0
    """A round trip differs by at most so much: each direction by half of it, evenly
    distributed, so small differences are the most frequent."""
    loss_ratio: float = 0.0
    """Share of the packets that are lost in each direction."""
    rate_bits_per_second: float = 0.0
    """Of each direction, with the headers of IP; 0 is unlimited."""

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise WrongUsageError(problem)

    def _problems(self) -> list[str]:
        longest = f"{LONGEST_SECONDS:g} s"
        slowest = format_rate(SLOWEST_BITS_PER_SECOND)
        checks = {
            f"A round trip takes 0 to {longest}.": (
                0 <= self.round_trip_seconds <= LONGEST_SECONDS
            ),
            "The jitter is at most as long as the round trip.": (
                0 <= self.jitter_seconds <= self.round_trip_seconds
            ),
            "A loss is 0% to 100%.": 0 <= self.loss_ratio <= 1,
            f"A rate is {slowest} or more, or {UNLIMITED}.": (
                self.rate_bits_per_second == 0
                or self.rate_bits_per_second >= SLOWEST_BITS_PER_SECOND
            ),
        }
        return [text for text, is_right in checks.items() if not is_right]

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Return the link of an object that `as_json` made."""
        return cls(**found)

    def as_json(self) -> dict[str, float]:
        """Return the values by their names."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the values for users: `100 ms ± 10 ms, loss 1%, 6 Mbit/s`."""
        round_trip = format_duration(self.round_trip_seconds)
        if self.jitter_seconds:
            round_trip += f" ± {format_duration(self.jitter_seconds)}"
        return (
            f"{round_trip}, loss {100 * self.loss_ratio:g}%,"
            f" {format_rate(self.rate_bits_per_second)}"
        )

    @property
    def delay_seconds(self) -> float:
        """The delay of one direction."""
        return self.round_trip_seconds / 2

    @property
    def queue_seconds(self) -> float:
        """How long packets wait at most until the link is free; more are dropped.

        With a queue of one round trip, a single TCP connection fills the link.
        """
        return max(self.round_trip_seconds, LEAST_QUEUE_SECONDS)


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as 277ms; raises ValueError."""
    return _number_with_unit(text, DURATION_UNITS)


def parse_rate(text: str) -> float:
    """Return the bits per second of a rate such as 6Mbit; 0 if it is unlimited.

    Raises ValueError.
    """
    return 0.0 if text == UNLIMITED else _number_with_unit(text, RATE_UNITS)


def parse_ratio(text: str) -> float:
    """Return the ratio of a percentage such as 1%; raises ValueError."""
    return _number_with_unit(text, {"%": 0.01})


def _number_with_unit(text: str, units: Mapping[str, float]) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z%]+)", text.strip().lower())
    if not found or found[2] not in units:
        raise ValueError(text)
    return float(found[1]) * units[found[2]]


def format_duration(seconds: float) -> str:
    """Return a duration in milliseconds: `277 ms`."""
    return f"{seconds * 1000:g} ms"


def format_rate(bits_per_second: float) -> str:
    """Return a rate in a unit that suits it: `6 Mbit/s`."""
    if not bits_per_second:
        return UNLIMITED
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bits_per_second >= factor:
            return f"{bits_per_second / factor:g} {unit}"
    return f"{bits_per_second:g} bit/s"

"""What the terminal and the page show alike: which rows, and numbers as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from keylag.breakdown import Call, Numbers, Run

NOTHING: Final = "-"
"""Stands where there is no number."""

CLIENT: Final = ("mean", "p50", "p95", "max")
"""The columns of the client's latency."""


@dataclass(frozen=True)
class Shown:
    """One call of one run."""

    run: Run
    call: Call


def by_call(runs: Sequence[Run]) -> Iterator[list[Shown]]:
    """Give each kind of call with its runs, both in the order they came."""
    groups: dict[tuple[str, str, str | None], list[Shown]] = {}
    for run in runs:
        for call in run["calls"]:
            key = (call["method"], call["route"], call["auth_method"])
            groups.setdefault(key, []).append(Shown(run, call))
    yield from groups.values()


def value(numbers: Mapping[str, float] | None, name: str) -> float | None:
    """Return a statistic, or None where nothing was measured."""
    return numbers[name] if numbers and name in numbers else None


def ms(seconds: float | None, digits: int = 1) -> str:
    """Write seconds as milliseconds, without the unit."""
    return NOTHING if seconds is None else f"{seconds * 1000:.{digits}f}"


def per_cent(share: float | None) -> str:
    """Write a share, with its unit."""
    return NOTHING if share is None else f"{share * 100:.1f} %"


def count(number: float | None) -> str:
    """Write a mean count."""
    return NOTHING if number is None else f"{number:.1f}"


def total(parts: Mapping[str, Numbers], name: str) -> float | None:
    """Sum a statistic over all parts; None without parts."""
    return sum(part[name] for part in parts.values()) if parts else None


def digits_for(longest: float) -> int:
    """Return how many decimals of a millisecond are worth showing."""
    return 1 if longest >= 0.1 else 2  # noqa: PLR2004 - a tenth of a second

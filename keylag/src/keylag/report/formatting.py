"""Grouping and number formats that the terminal and the HTML page share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from keylag.breakdown import Call, Run, Statistics

NO_VALUE: Final = "-"
"""Shown where there is no number."""

CLIENT_STATISTICS: Final = ("mean", "p50", "p95", "max")
"""Statistics of the latency at the client, one column each."""


@dataclass(frozen=True)
class RunCall:
    """One call of one run."""

    run: Run
    call: Call


def group_by_call(runs: Sequence[Run]) -> Iterator[list[RunCall]]:
    """Yield the runs of each kind of call; calls and runs keep their order."""
    groups: dict[tuple[str, str, str | None], list[RunCall]] = {}
    for run in runs:
        for call in run["calls"]:
            key = (call["method"], call["route"], call["auth_method"])
            groups.setdefault(key, []).append(RunCall(run, call))
    yield from groups.values()


def statistic(numbers: Mapping[str, float] | None, name: str) -> float | None:
    """Return a statistic by name; None if it was not measured."""
    return numbers[name] if numbers and name in numbers else None


def format_ms(seconds: float | None, digits: int = 1) -> str:
    """Format seconds as milliseconds, without the unit."""
    return NO_VALUE if seconds is None else f"{seconds * 1000:.{digits}f}"


def format_percent(share: float | None) -> str:
    """Format a share from 0 to 1 as per cent."""
    return NO_VALUE if share is None else f"{share * 100:.1f} %"


def format_count(number: float | None) -> str:
    """Format a mean count with one decimal."""
    return NO_VALUE if number is None else f"{number:.1f}"


def sum_statistic(parts: Mapping[str, Statistics], name: str) -> float | None:
    """Return the sum of a statistic over all parts; None without parts."""
    return sum(part[name] for part in parts.values()) if parts else None


def ms_decimals(longest_seconds: float) -> int:
    """Return how many decimals to show in milliseconds for durations up to this."""
    return 1 if longest_seconds >= 0.1 else 2  # noqa: PLR2004 - in seconds


def decimals_of(one: RunCall) -> int:
    """Return how many decimals to show in the milliseconds of a call."""
    return ms_decimals(statistic(one.call["wall_seconds"], "mean") or 0.0)

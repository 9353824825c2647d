"""What a result says, in sentences: the same ones everywhere."""

import math
from collections.abc import Sequence
from typing import Final

from keylag.experiment.analysis import Comparison, Difference, RequestCounts
from keylag.experiment.confidence_sequence import Interval
from keylag.experiment.measures import OUTSIDE
from keylag.experiment.verdicts import CANNOT_TELL, FASTER, NO_DIFFERENCE, SLOWER
from keylag.phases import CATEGORY_NAMES
from keylag.server_timing import COUNTS

PART_NAMES: Final = {**CATEGORY_NAMES, OUTSIDE: "outside Keystone"}
MEASURE_NAMES: Final = {
    "p50": "median",
    "p95": "95th percentile",
    "mean": "mean",
    "throughput": "requests per second",
    "sql_statements": "SQL statements",
    "cache_calls": "cache calls",
}
COUNT_VERDICTS: Final = {FASTER: "fewer", SLOWER: "more"}
SECONDS_PER_MINUTE: Final = 60


def verdict_text(found: Difference) -> str:
    """Return the verdict; of a count, which is more or fewer and never faster."""
    said = COUNT_VERDICTS if found.name in COUNTS else {}
    return said.get(found.verdict, found.verdict)


def format_milliseconds(found: Interval) -> str:
    """Write an interval of seconds, with its sign and unit."""
    low, mid, high = (f"{v * 1000:+.2f}" for v in (found.low, found.mid, found.high))
    return f"{mid} ms [{low}, {high}]"


def format_percent(found: Interval | None) -> str:
    """Write a relative interval, with its sign and unit."""
    if found is None:
        return "-"
    low, mid, high = (f"{v * 100:+.1f}" for v in (found.low, found.mid, found.high))
    return f"{mid} % [{low}, {high}]"


def headline(
    one: Comparison, base: str, measure: str, counts: RequestCounts | None
) -> str:
    """Say in a sentence how an arm does against the base."""
    found = one.measures.get(measure)
    what = f"{one.method}, {MEASURE_NAMES[measure]}"
    if counts is None or counts.failed == counts.requests:
        return f"{one.arm}: no request went well, so there is nothing to compare."
    if not one.sound:
        return (
            f"{one.arm} against {base}: {CANNOT_TELL}. Too many requests failed, there "
            "or with the base, for the others to stand for all."
        )
    if found is None:
        return f"{one.arm} against {base}: {CANNOT_TELL}. No round is whole yet."
    against = "to" if found.verdict == NO_DIFFERENCE else "than"
    start = f"{one.arm}: {found.verdict}"
    if found.verdict == CANNOT_TELL:
        start += f", compared with {base}"
    else:
        start += f" {against} {base}"
    return f"{start}. {what}: {format_percent(found.relative)}, {one.rounds} rounds."


def explain_difference(one: Comparison) -> str:
    """Say which parts make up the difference of the mean, the largest first."""
    mean = one.measures.get("mean")
    if mean is None or not one.parts:
        return ""
    clear = [part for part in one.parts.values() if _excludes_zero(part)]
    clear.sort(key=lambda part: -abs(part.absolute.mid))
    parts = [f"{PART_NAMES[p.name]} {p.absolute.mid * 1000:+.2f}" for p in clear]
    start = f"Mean {format_milliseconds(mean.absolute)}"
    if not parts:
        return f"{start}; no part can be told from noise."
    rest = "" if len(clear) == len(one.parts) else "; the rest is within noise"
    return f"{start}, of which, in ms: {', '.join(parts)}{rest}."


def _excludes_zero(part: Difference) -> bool:
    """Tell whether a part's difference is not zero, large or small."""
    return part.absolute.low > 0 or part.absolute.high < 0


def describe_counts(one: Comparison) -> str:
    """Say how the counts of a request changed."""
    changed = [
        f"{MEASURE_NAMES[name]} {found.base:.1f} -> {found.arm:.1f}"
        for name, found in one.counts.items()
    ]
    return f"For each request: {', '.join(changed)}." if changed else ""


def detectable_difference(compared: Sequence[Comparison], measure: str) -> str:
    """Say how small a difference the widest open interval would have shown."""
    found = [one.measures[measure] for one in compared if measure in one.measures]
    halves = [
        (one.relative.high - one.relative.low) / 2
        for one in found
        if one.relative and one.verdict == CANNOT_TELL
    ]
    if not halves:
        return ""
    if math.isinf(widest := max(halves)):
        return "So few rounds tell no difference at all."
    return f"Differences above {100 * widest:.1f} % can be told so far."


def remaining_time(
    compared: Sequence[Comparison], measure: str, round_seconds: float
) -> str:
    """Say how much longer it takes until every arm has its verdict."""
    found = [one.measures[measure] for one in compared if measure in one.measures]
    needed = [one.rounds_needed for one in found if one.verdict == CANNOT_TELL]
    if not found or None in needed:
        return "Nobody can say yet how much longer it takes to tell."
    if not needed:
        return "Nothing is open."
    rounds = max(1, max(filter(None, needed)) - compared[0].rounds)
    minutes = max(1, rounds * round_seconds / SECONDS_PER_MINUTE)
    return (
        f"If mean and spread stay as they are, some {rounds} more rounds, "
        f"about {minutes:.0f} min, would tell."
    )

"""The sentences of reports, progress lines and forecasts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from keylag.experiment.analysis import (
    MAX_FAILED_SHARE,
    Comparison,
    RequestCounts,
)
from keylag.experiment.arm_pair import Control, Difference
from keylag.experiment.interval import Interval
from keylag.experiment.load_monitor import Disturbance, combine
from keylag.experiment.measures import HIGHER_IS_BETTER, OUTSIDE
from keylag.experiment.plan import MIN_ROUNDS, SECONDS_PER_MINUTE, Decision, Plan
from keylag.experiment.verdicts import CANNOT_TELL, FAILS, FASTER, SLOWER
from keylag.phases import CATEGORY_NAMES
from keylag.server_timing import COUNTS

UNEQUAL_ROUNDS: Final = (
    "An arm that left has fewer rounds than others, and the machine's speed differs "
    "between rounds. Compare an arm with the base below, where both have the same ones."
)
PART_NAMES: Final = {**CATEGORY_NAMES, OUTSIDE: "outside Keystone"}
MEASURE_NAMES: Final = {
    "p50": "median",
    "p95": "95th percentile",
    "mean": "mean",
    "throughput": "requests per second",
    "sql_statements": "SQL statements",
    "cache_calls": "cache calls",
    **{name: f"{text} in the mean" for name, text in PART_NAMES.items()},
}
COUNT_VERDICTS: Final = {FASTER: "fewer", SLOWER: "more"}


def describe_arms_and_load(plan: Plan) -> Iterator[str]:
    """Yield a line about the arms of a plan, and one about its load."""
    properties = (f"{name}={value}" for name, value in plan.load.properties.items())
    yield f"Arms: {plan.base} (base), {', '.join(plan.other_arms) or 'no other'}"
    yield " ".join(["Load:", plan.load.plan, *properties])


def verdict_text(found: Difference) -> str:
    """Return the verdict; for a count, "fewer" or "more" in place of "faster"."""
    texts = COUNT_VERDICTS if found.name in COUNTS else {}
    return texts.get(found.verdict, found.verdict)


def format_milliseconds(found: Interval) -> str:
    """Format an interval of seconds as signed milliseconds."""
    low, mid, high = (f"{v * 1000:+.2f}" for v in (found.low, found.mid, found.high))
    return f"{mid} ms [{low}, {high}]"


def format_percent(found: Interval | None) -> str:
    """Format an interval of shares as signed per cent; None becomes a dash.

    With too few rounds for an interval, says so.
    """
    if found is None:
        return "-"
    low, mid, high = (f"{v * 100:+.1f}" for v in (found.low, found.mid, found.high))
    if math.isinf(found.high):
        return f"{mid} %, no interval before round {MIN_ROUNDS}"
    return f"{mid} % [{low}, {high}]"


def headline(
    one: Comparison, base: str, decision: Decision, counts: RequestCounts | None
) -> str:
    """Return the verdict on an arm, and what is certain without one."""
    measure, smallest = decision.measure, decision.smallest
    found = one.measures.get(measure)
    if counts is None or not counts.successful:
        return f"{one.arm}: {FAILS}, compared with {base}. No request succeeded."
    undecided = f"{one.arm}: {CANNOT_TELL}, compared with {base}"
    if not one.sound:
        return (
            f"{undecided}. More than {100 * MAX_FAILED_SHARE:.0f} % of the requests of "
            f"{one.arm} or {base} failed."
        )
    if found is None:
        return f"{undecided}. {explain_missing_figure(one)}"
    decided = found.verdict in {FASTER, SLOWER}
    preposition = " than" if decided else ", compared with"
    return (
        f"{one.arm}: {found.verdict}{preposition} {base}. "
        f"{one.method}, {MEASURE_NAMES[measure]}: {format_percent(found.relative)}, "
        f"{one.rounds} rounds.{_what_is_certain(found, smallest)}"
    )


def explain_missing_figure(one: Comparison) -> str:
    """Say why an arm lacks the measure that the plan decides by."""
    if not one.measures:
        return "No round is complete."
    return _explain_missing_parts(one.has_parts)


def _what_is_certain(found: Difference, smallest: float) -> str:
    """Say what the interval of an undecided arm rules out all the same."""
    interval = found.relative
    if found.verdict != CANNOT_TELL or interval is None:
        return ""
    rises, falls = (SLOWER, FASTER)
    if found.name in HIGHER_IS_BETTER:
        rises, falls = falls, rises
    text = ""
    if not interval.holds_zero:
        text = " Of several arms, one may differ by so much by chance."
    if interval.high < smallest:
        return f"{text} It is not {rises} by {100 * smallest:g} % or more."
    if interval.low > -smallest:
        return f"{text} It is not {falls} by {100 * smallest:g} % or more."
    return text


def explain_difference(one: Comparison) -> str:
    """Say how many milliseconds of the difference each part is, the largest first."""
    mean = one.measures.get("mean")
    if mean is None:
        return ""
    start = f"Difference of the mean: {format_milliseconds(mean.absolute)}."
    if not one.parts:
        return f"{start} {_explain_missing_parts(one.has_parts)}".rstrip()
    parts = sorted(one.parts.values(), key=lambda part: -abs(part.absolute.mid))
    groups = {
        "Parts that differ": [part for part in parts if part.differs],
        "Not shown to differ": [part for part in parts if not part.differs],
    }
    sentences = [
        f"{title}, in ms: {', '.join(map(_part_milliseconds, found))}."
        for title, found in groups.items()
        if found
    ]
    return " ".join([start, *sentences])


def _part_milliseconds(part: Difference) -> str:
    return f"{PART_NAMES[part.name]} {part.absolute.mid * 1000:+.2f}"


def _explain_missing_parts(has_parts: Mapping[str, bool]) -> str:
    without = [arm for arm, found in has_parts.items() if not found]
    instrumented = [arm for arm, found in has_parts.items() if found]
    if not without:
        return ""
    reason = (
        "It is the latency at the client, without parts: responses of "
        f"{' and '.join(without)} lack the Server-Timing header of Keylag."
    )
    if not instrumented:
        return reason
    return (
        f"{reason} The cost of Keylag in {instrumented[0]} is part of the difference, "
        f"unless {without[0]} is instrumented too and only sends no header."
    )


def describe_other_programs(disturbances: Sequence[Disturbance]) -> str:
    """Say how idle the machine was beside the experiment; empty if unknown."""
    mean = combine(disturbances).other_programs
    if mean is None:
        return ""
    worst = max(one.other_programs or 0.0 for one in disturbances)
    return (
        f"Under load, other programs used {100 * mean:.1f} % of the processors' time, "
        f"{100 * worst:.1f} % in the worst round."
    )


def describe_breakdown(arm: str, counts: RequestCounts) -> str:
    """Say whether there is more of an arm than the latency at the client."""
    if not counts.successful:
        return ""
    if counts.has_parts:
        return f"{arm}: every response has the parts that Keylag measured in Keystone."
    some = f"Only {counts.broken_down}" if counts.broken_down else "None"
    return (
        f"{arm}: latency at the client only. {some} of {counts.successful} responses "
        "came with the Server-Timing header of Keylag."
    )


def describe_control(control: Control | None, arm: str) -> str:
    """Say what the control is, and what it is good for."""
    if control is None:
        return ""
    name = PART_NAMES[control.name]
    if not control.is_used:
        return (
            f"The plan's control, {name}, is not used: with {arm} it changes the mean "
            f"by {format_percent(control.relative)}."
        )
    return (
        f"Control: {name}, which no arm changes. Its own difference, "
        f"{format_percent(control.relative)} of the mean, is taken for noise; it "
        f"explains {100 * control.explained:.0f} % of the variance of the mean between "
        "rounds. All differences are adjusted for it; unadjusted, the mean differs by "
        f"{format_percent(control.unadjusted)}. Base and arm are shown as measured."
    )


def describe_decided_arms(
    compared: Sequence[Comparison], decided: Sequence[str]
) -> str:
    """Say which arms left the run, and when; empty if none did."""
    left = [
        f"{one.arm} after {one.rounds} rounds" for one in compared if one.arm in decided
    ]
    if not left:
        return ""
    return f"Arms with a verdict took no more turns: {', '.join(left)}."


def describe_counts(one: Comparison) -> str:
    """Return the counts per request of the base and of the arm."""
    counts = [
        f"{MEASURE_NAMES[name]} {found.base:.1f} -> {found.arm:.1f}"
        for name, found in one.counts.items()
    ]
    return f"Per request: {', '.join(counts)}." if counts else ""


def detectable_difference(compared: Sequence[Comparison], measure: str) -> str:
    """Say how wide the widest undecided interval is, and what that finds."""
    found = [one.measures[measure] for one in compared if measure in one.measures]
    half_widths = [
        (one.relative.high - one.relative.low) / 2
        for one in found
        if one.relative and one.verdict == CANNOT_TELL
    ]
    if not half_widths:
        return ""
    if math.isinf(widest := max(half_widths)):
        return "There are too few rounds to detect any difference."
    return (
        f"The widest undecided interval is ± {100 * widest:.1f} %: a difference of"
        " that size is found in half of the runs at most."
    )


def remaining_rounds(compared: Sequence[Comparison], measure: str) -> int | None:
    """Return the rounds until every arm has a verdict; None if that is unknown."""
    most = 0 if compared else None
    for one in compared:
        found = one.measures.get(measure)
        if found and found.verdict != CANNOT_TELL:
            continue
        if not found or found.rounds_needed is None or most is None:
            return None
        most = max(most, 1, found.rounds_needed - one.rounds)
    return most


def remaining_time(
    compared: Sequence[Comparison], measure: str, round_seconds: float
) -> str:
    """Return the time until every arm has a verdict, as a sentence."""
    rounds = remaining_rounds(compared, measure)
    if rounds is None:
        return "Not enough data to estimate the remaining time."
    if not rounds:
        return "Every arm has a verdict."
    minutes = max(1, rounds * round_seconds / SECONDS_PER_MINUTE)
    more = "1 more round" if rounds == 1 else f"{rounds} more rounds"
    return (
        f"At the present mean and spread, a verdict needs about {more} "
        f"({minutes:.0f} min)."
    )

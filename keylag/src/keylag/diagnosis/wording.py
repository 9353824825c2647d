"""Sentences and numbers of a diagnosis, for the terminal and the page."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from keylag.diagnosis.common import name_kind
from keylag.diagnosis.facts import SERVED, Calls, Facts, Window
from keylag.diagnosis.failing import Failing
from keylag.diagnosis.impact import UNKNOWN_CALLERS, callers, has_unknown_callers
from keylag.diagnosis.quantile_shares import quantile_shares
from keylag.diagnosis.ranking import Diagnosis, Finding, Reason
from keylag.diagnosis.rule import Evidence, Fix, Saving
from keylag.diagnosis.unexplained import Unexplained
from keylag.experiment.interval import Interval
from keylag.phases import CATEGORY_NAMES

SHARES: Final = ("of all", "of the time", "of the limit")
"""Units of what is shown as per cent."""
LITTLE: Final = 0.01
"""A smaller share is not worth a word."""
HEALTHY: Final = "No cause found: nothing costs a sixth of a call, or doubles a p95."
NOTABLE: Final = 0.1
"""Smallest share of a call for which a cause is named without being a finding."""
UNEXPLAINED: Final = (
    "Trace slow calls to see each step: KEYLAG_TRACE_SLOW_SECONDS, `keylag trace`."
)
UNSET: Final = "Keystone's default, as no file of --config sets it"
NO_RUNNER_UP: Final = "No other cause that could be judged costs time."


def clock(at: float) -> str:
    """Return a time of day in UTC: "09:15:00"."""
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"


def name_calls(calls: Calls) -> str:
    """Return the name of a row of calls."""
    outcome = "" if calls.outcome == SERVED else f" ({calls.outcome})"
    return name_kind(calls.kind) + outcome


def when(window: Window) -> str:
    """Return a window in UTC: "2026-11-23 09:00:00 to 09:15:00 UTC"."""
    start, end = (datetime.fromtimestamp(at, UTC) for at in (window.start, window.end))
    until = f"{end:%H:%M:%S}" if start.date() == end.date() else f"{end:%F %T}"
    return f"{start:%F %T} to {until} UTC"


def calls_title(facts: Facts) -> str:
    """Return the title of the token calls."""
    if not has_time(facts):
        return "Token calls"
    minutes = f"{facts.window.seconds / 60:.3g}"
    return f"Token calls of {minutes} minute{'s' * (minutes != '1')}"


def has_time(facts: Facts) -> bool:
    """Return whether the facts are of a time that a dashboard can show."""
    return facts.window.start > 0


def cost_texts(diagnosis: Diagnosis, finding: Finding) -> Iterator[str]:
    """Yield what a finding costs each kind of calls: "at least 8% of GET (p50 9%)"."""
    for kind, share in finding.shares.items():
        saving = finding.suspicion.savings.get(kind)
        quantiles = quantile_shares(diagnosis.case, kind, saving) if saving else {}
        if max([share, *quantiles.values()]) < LITTLE:
            continue
        more = ", ".join(
            f"p{100 * at:.0f} {value:.0%}" for at, value in quantiles.items()
        )
        text = f"at least {share:.0%} of {name_kind(kind)}"
        yield f"{text} ({more})" if more else text


def caller_texts(diagnosis: Diagnosis, finding: Finding) -> Iterator[str]:
    """Yield sentences on who sends the calls that a finding hits."""
    known = [
        f"{one.name} {format_number(one.cost, 's/s')}"
        for one in callers(diagnosis.case, finding)
        if one.cost
    ]
    if known:
        yield f"Validations by caller: {', '.join(known)}."
    if has_unknown_callers(finding):
        yield UNKNOWN_CALLERS


def open_questions(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield sentences on calls that fail, and on those that are slow for no cause."""
    yield from map(_failing_text, diagnosis.failing)
    yield from map(_unexplained_text, diagnosis.unexplained)


def _failing_text(one: Failing) -> str:
    reason = "Keystone's log has the reason."
    if one.refused_commits_per_second:
        rate = format_number(one.refused_commits_per_second, "commits/s")
        reason += (
            f" Meanwhile the Galera cluster refused {rate}, because several nodes wrote"
            " the same rows: let all Keystones write to one node."
        )
    return (
        f"{one.share:.0%} of {name_kind(one.kind)} fail after"
        f" {format_number(one.seconds, 's')}, with an error of Keystone (5xx), and not"
        f" because of their client. {reason}"
    )


def _unexplained_text(one: Unexplained) -> str:
    taken, expected, beyond = (
        format_number(seconds, "s")
        for seconds in (one.seconds, one.expected, one.category_seconds)
    )
    beside, most = " beside what the findings cost", ""
    if one.category:
        name = CATEGORY_NAMES[one.category]
        beside, most = "", f" Most of it is in {name}: {beyond} more than expected."
    return (
        f"{name_kind(one.kind)} takes {taken}{beside}, {one.times:.1f} times what is"
        f" expected ({expected}), and no cause that could be judged explains it.{most}"
        f" {UNEXPLAINED}"
    )


def format_saving(saving: Saving | Interval) -> str:
    """Format seconds with their interval: "4.2 ms (3.1 ms to 5 ms)"."""
    low, mid, high = (
        format_number(one, "s") for one in (saving.low, saving.mid, saving.high)
    )
    return f"{mid} ({low} to {high})"


def present(diagnosis: Diagnosis, fix: Fix) -> str:
    """Return the present value of a fix's option; empty if nothing tells it."""
    configuration = diagnosis.facts.configuration
    if fix.option is None or not configuration.files:
        return ""
    found = configuration.settings.get(fix.option)
    return f"Now: {found or UNSET}."


def runner_up(diagnosis: Diagnosis, finding: Finding) -> str:
    """Return the next cause, and why it is behind."""
    second = diagnosis.runner_up(finding)
    return name_reason(second) if second else NO_RUNNER_UP


def no_cause(diagnosis: Diagnosis) -> str:
    """Return that there is no finding, and the cause that comes next to one."""
    costs = [one for one in diagnosis.unlikely if one.share >= NOTABLE]
    if not costs:
        return HEALTHY
    most = max(costs, key=lambda one: one.share)
    return f"{HEALTHY} The most is {most.rule.id} {most.rule.name}, {most.share:.0%}."


def name_reason(reason: Reason) -> str:
    """Return a cause that is no finding, and why."""
    return f"{reason.rule.id} {reason.rule.name}. {reason.why}"


def evidence_value(one: Evidence) -> str:
    """Return the value of evidence."""
    return format_number(one.value, one.unit)


def evidence_expected(one: Evidence) -> str:
    """Return what a healthy Keystone would have; empty if that is unknown."""
    if one.baseline is None:
        return ""
    return f"expected {format_number(one.baseline, one.unit)}"


def format_number(value: float, unit: str) -> str:
    """Format a number with its unit, with three significant digits."""
    if unit == "s":
        return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
    if unit in SHARES:
        return f"{value:.0%} {unit}"
    return f"{value:.3g} {unit}".rstrip()

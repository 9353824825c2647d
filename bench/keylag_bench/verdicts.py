"""Judge the goals, and warn about results that cannot be trusted."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from keylag_bench.arms_and_workloads import BASE, CONTROL, KEYLAG, WORKLOADS
from keylag_bench.intervals import MIN_RESTARTS, Interval
from keylag_bench.results import ArmSummary, Result

MAX_SHARE_OF_OTEL = 0.1
"""Goal: Keylag's overhead relative to OpenTelemetry's instrumentations."""
MIN_SPANS = 1.5
"""This goal needs more spans per request, so that OpenTelemetry sees internals."""
MAX_CONTROL_WIDTH = 0.02
"""A wider interval of the control hides effects of the size of the goals."""
MIN_ROUNDS = 10
"""The minimum for a verdict."""
MIN_INTERVAL_WIDTH = 1e-9
"""Narrower intervals come from copied data: no two processes are that equal."""
MET, MISSED, CANNOT_TELL = "met", "missed", "cannot tell"


@dataclass(frozen=True)
class Verdict:
    """The verdict on one goal in one workload."""

    workload: str
    goal: str
    outcome: str
    """MET, MISSED or CANNOT_TELL."""
    found: Interval

    def as_json(self) -> dict[str, object]:
        """Return the value for overhead.json."""
        return {**asdict(self), "found": self.found.as_list()}

    def as_text(self) -> str:
        """Return one line of text."""
        return f"{self.workload}: {self.goal}: {self.outcome} ({self.found.as_text()})"


def judge(found: Interval, at_most: float) -> str:
    """Return MET or MISSED by the whole interval, otherwise CANNOT_TELL."""
    if found.high <= at_most:
        return MET
    return MISSED if found.low > at_most else CANNOT_TELL


def verdicts(result: Result) -> list[Verdict]:
    """Return the verdicts on the goals of all measured workloads."""
    return [
        verdict
        for workload, arms in result.items()
        if KEYLAG in arms
        for verdict in _workload_verdicts(workload, arms)
    ]


def _workload_verdicts(
    workload: str, arms: Mapping[str, ArmSummary]
) -> Iterator[Verdict]:
    enough = not _missing_evidence(arms)
    for text, found, at_most in _goals(workload, arms[KEYLAG], arms.get("otel")):
        outcome = judge(found, at_most) if enough else CANNOT_TELL
        yield Verdict(workload, text, outcome, found)


def _goals(
    workload: str, keylag: ArmSummary, otel: ArmSummary | None
) -> Iterator[tuple[str, Interval, float]]:
    # Yields each goal as text, the measured interval, and the limit.
    goal = WORKLOADS[workload].goal
    if goal is None:
        return
    yield f"CPU <= {goal} of bare", keylag.cpu_ratio, goal
    share = keylag.share_of_otel
    if otel and share and otel.counts.get("spans", 0) > MIN_SPANS:
        yield (
            f"adds <= {MAX_SHARE_OF_OTEL} of what OpenTelemetry adds",
            share,
            MAX_SHARE_OF_OTEL,
        )


def find_warnings(result: Result) -> list[str]:
    """Return reasons against trusting the figures, for each workload."""
    return [text for name, arms in result.items() for text in _warnings_of(name, arms)]


def _warnings_of(workload: str, arms: Mapping[str, ArmSummary]) -> Iterator[str]:
    if missing := _missing_evidence(arms):
        yield f"{workload}: {missing}; there is no verdict."
    elif CONTROL in arms:
        yield from _control_warnings(workload, arms[CONTROL].cpu_ratio)
    else:
        yield f"{workload}: the control is missing. Add --arms {CONTROL}."


def _missing_evidence(arms: Mapping[str, ArmSummary]) -> str:
    base = arms[BASE]
    if base.restarts < MIN_RESTARTS:
        return (
            f"{base.restarts} restart is too few for an interval, which needs at "
            f"least {MIN_RESTARTS}"
        )
    if base.rounds < MIN_ROUNDS:
        return f"{base.rounds} rounds are too few"
    others = [found.cpu_ratio for arm, found in arms.items() if arm != BASE]
    if any(ratio.width < MIN_INTERVAL_WIDTH for ratio in others):
        return "all restarts are exactly equal, so they were not measured"
    return ""


def _control_warnings(workload: str, found: Interval) -> Iterator[str]:
    if not found.contains(1.0):
        yield (
            f"{workload}: the control differs from bare Keystone, "
            f"[{found.low:.3f}, {found.high:.3f}]. This happens by chance in one "
            "workload of twenty. Otherwise other programs used the machine: repeat "
            "the run."
        )
    if found.width > MAX_CONTROL_WIDTH:
        yield (
            f"{workload}: the interval of the control is {found.width:.3f} wide. Use a "
            "quieter machine, or more --restarts and --rounds."
        )

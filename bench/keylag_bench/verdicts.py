"""Judge the result: the goals, and whether the machine let us see them at all."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from keylag_bench.arms_and_workloads import BASE, CONTROL, KEYLAG, WORKLOADS
from keylag_bench.intervals import MIN_RESTARTS, Interval
from keylag_bench.results import ArmSummary, Result

MAX_SHARE_OF_OTEL = 0.1
"""Of what OpenTelemetry's own instrumentations add, at most this."""
MIN_SPANS = 1.5
"""More spans than this a request: they see more than the request itself."""
MAX_CONTROL_WIDTH = 0.02
"""A control whose interval is wider hides what is looked for."""
MIN_ROUNDS = 10
"""With fewer an interval means nothing."""
MIN_INTERVAL_WIDTH = 1e-9
"""Restarts that differ by less were not measured: no two processes are so alike."""
MET, MISSED, CANNOT_TELL = "met", "missed", "cannot tell"


@dataclass(frozen=True)
class Verdict:
    """One goal on one workload."""

    workload: str
    goal: str
    outcome: str
    """MET, MISSED or CANNOT_TELL."""
    found: Interval

    def as_json(self) -> dict[str, object]:
        """Return it as overhead.json has it."""
        return {**asdict(self), "found": self.found.as_list()}

    def as_text(self) -> str:
        """Return it as a line."""
        return f"{self.workload}: {self.goal}: {self.outcome} ({self.found.as_text()})"


def judge(found: Interval, at_most: float) -> str:
    """Say on which side of a goal an interval lies; what is no number is on none."""
    if found.high <= at_most:
        return MET
    return MISSED if found.low > at_most else CANNOT_TELL


def verdicts(result: Result) -> list[Verdict]:
    """Return the verdict on every goal that was measured."""
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
    """Yield each goal as text, with what was found and what it may be at most."""
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
    """Say why the figures are not to be trusted, where the control shows it."""
    return [text for name, arms in result.items() for text in _warnings_of(name, arms)]


def _warnings_of(workload: str, arms: Mapping[str, ArmSummary]) -> Iterator[str]:
    if lack := _missing_evidence(arms):
        yield f"{workload}: {lack}; no verdict holds."
    elif CONTROL in arms:
        yield from _control_warnings(workload, arms[CONTROL].cpu_ratio)
    else:
        yield f"{workload}: no control was run. Add --arms {CONTROL}."


def _missing_evidence(arms: Mapping[str, ArmSummary]) -> str:
    """Say what a workload lacks for any verdict; nothing if it has it all."""
    base = arms[BASE]
    if base.restarts < MIN_RESTARTS:
        return (
            f"{base.restarts} restart has no interval, which needs at least "
            f"{MIN_RESTARTS} restarts"
        )
    if base.rounds < MIN_ROUNDS:
        return f"{base.rounds} rounds are too few"
    others = [found.cpu_ratio for arm, found in arms.items() if arm != BASE]
    if any(ratio.width < MIN_INTERVAL_WIDTH for ratio in others):
        return "all restarts are exactly alike, as no measurements are"
    return ""


def _control_warnings(workload: str, found: Interval) -> Iterator[str]:
    if not found.contains(1.0):
        yield (
            f"{workload}: bare Keystone differs from itself, "
            f"[{found.low:.3f}, {found.high:.3f}]. One workload in twenty does by "
            "chance; otherwise something else was using the machine: run it again."
        )
    if found.width > MAX_CONTROL_WIDTH:
        yield (
            f"{workload}: the control's interval is {found.width:.3f} wide. Run it "
            "on a quieter machine, or with more --restarts and --rounds."
        )

"""Judge the result: the goals, and whether the machine let us see them at all."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from keylag_bench.intervals import FEWEST_RESTARTS, Interval
from keylag_bench.results import Measured, Result
from keylag_bench.tables import BASE, CONTROL, KEYLAG, WORKLOADS

SHARE_GOAL = 0.1
"""Of what OpenTelemetry's own instrumentations add, at most this."""
SPANS_SEEN = 1.5
"""More spans than this a request: they see more than the request itself."""
WIDEST_CONTROL = 0.02
"""A control whose interval is wider hides what is looked for."""
FEWEST_BLOCKS = 10
"""With fewer an interval means nothing."""
NARROWEST = 1e-9
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
        for verdict in _of_one(workload, arms)
    ]


def _of_one(workload: str, arms: Mapping[str, Measured]) -> Iterator[Verdict]:
    enough = not _lacks(arms)
    for text, found, at_most in _goals(workload, arms[KEYLAG], arms.get("otel")):
        outcome = judge(found, at_most) if enough else CANNOT_TELL
        yield Verdict(workload, text, outcome, found)


def _goals(
    workload: str, keylag: Measured, otel: Measured | None
) -> Iterator[tuple[str, Interval, float]]:
    """Yield each goal as text, with what was found and what it may be at most."""
    goal = WORKLOADS[workload].goal
    if goal is None:
        return
    yield f"CPU <= {goal} of bare", keylag.cpu_ratio, goal
    share = keylag.share_of_otel
    if otel and share and otel.counts.get("spans", 0) > SPANS_SEEN:
        yield f"adds <= {SHARE_GOAL} of what OpenTelemetry adds", share, SHARE_GOAL


def doubts(result: Result) -> list[str]:
    """Say why the figures are not to be trusted, where the control shows it."""
    return [text for name, arms in result.items() for text in _doubt(name, arms)]


def _doubt(workload: str, arms: Mapping[str, Measured]) -> Iterator[str]:
    if lack := _lacks(arms):
        yield f"{workload}: {lack}; no verdict holds."
    elif CONTROL in arms:
        yield from _doubt_of_control(workload, arms[CONTROL].cpu_ratio)
    else:
        yield f"{workload}: no control was run. Add --arms {CONTROL}."


def _lacks(arms: Mapping[str, Measured]) -> str:
    """Say what a workload lacks for any verdict; nothing if it has it all."""
    base = arms[BASE]
    if base.restarts < FEWEST_RESTARTS:
        return (
            f"{base.restarts} restart has no interval, which needs at least "
            f"{FEWEST_RESTARTS} restarts"
        )
    if base.blocks < FEWEST_BLOCKS:
        return f"{base.blocks} blocks are too few"
    others = [found.cpu_ratio for arm, found in arms.items() if arm != BASE]
    if any(ratio.width < NARROWEST for ratio in others):
        return "all restarts are exactly alike, as no measurements are"
    return ""


def _doubt_of_control(workload: str, found: Interval) -> Iterator[str]:
    if not found.holds(1.0):
        yield (
            f"{workload}: bare Keystone differs from itself, "
            f"[{found.low:.3f}, {found.high:.3f}]. One workload in twenty does by "
            "chance; otherwise something else was using the machine: run it again."
        )
    if found.width > WIDEST_CONTROL:
        yield (
            f"{workload}: the control's interval is {found.width:.3f} wide. Run it "
            "on a quieter machine, or with more --restarts and --blocks."
        )

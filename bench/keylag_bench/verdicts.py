"""Judge the result: the goals, and whether the machine let us see them at all."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from keylag_bench.intervals import Interval
from keylag_bench.results import Measured, Result
from keylag_bench.tables import BASE, CONTROL, WORKLOADS

SHARE_GOAL = 0.1
"""Of what OpenTelemetry's own instrumentations add, at most this."""
SPANS_SEEN = 1.5
"""More spans than this a request: they see more than the request itself."""
WIDEST_CONTROL = 0.02
"""A control whose interval is wider hides what is looked for."""
FEWEST_BLOCKS = 10
"""With fewer an interval means nothing."""
WORDS = {True: "met", False: "missed", None: "cannot tell"}


@dataclass(frozen=True)
class Verdict:
    """One goal on one workload."""

    workload: str
    goal: str
    outcome: str
    """A value of WORDS."""
    found: Interval

    def as_json(self) -> dict[str, object]:
        """Return it as overhead.json has it."""
        return {**asdict(self), "found": self.found.as_list()}

    def as_text(self) -> str:
        """Return it as a line."""
        low, mid, high = (f"{value:.3f}" for value in self.found.as_list())
        return f"{self.workload}: {self.goal}: {self.outcome} ({mid} [{low}, {high}])"


def judge(found: Interval, at_most: float) -> str:
    """Say whether an interval lies on one side of a goal."""
    met = None if found.low <= at_most < found.high else found.high <= at_most
    return WORDS[met]


def verdicts(result: Result) -> list[Verdict]:
    """Return the verdict on every goal that was measured."""
    return [
        verdict
        for workload, arms in result.items()
        if "keylag" in arms
        for verdict in _of_one(workload, arms["keylag"], arms.get("otel"))
    ]


def _of_one(
    workload: str, keylag: Measured, otel: Measured | None
) -> Iterator[Verdict]:
    goal = WORKLOADS[workload].goal
    if goal is None:
        return
    ratio, share = keylag.cpu_ratio, keylag.share_of_otel
    yield Verdict(workload, f"CPU <= {goal} of bare", judge(ratio, goal), ratio)
    if otel and share and otel.counts.get("spans", 0) > SPANS_SEEN:
        text = f"adds <= {SHARE_GOAL} of what OpenTelemetry adds"
        yield Verdict(workload, text, judge(share, SHARE_GOAL), share)


def doubts(result: Result) -> list[str]:
    """Say why the figures are not to be trusted, where the control shows it."""
    return [text for name, arms in result.items() for text in _doubt(name, arms)]


def _doubt(workload: str, arms: Mapping[str, Measured]) -> Iterator[str]:
    blocks = arms[BASE].blocks
    if blocks < FEWEST_BLOCKS:
        yield f"{workload}: {blocks} blocks are too few; no verdict holds."
    elif CONTROL in arms:
        yield from _doubt_of_control(workload, arms[CONTROL].cpu_ratio)


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

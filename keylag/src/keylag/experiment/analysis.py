"""Compare every arm with the base arm, from samples to verdicts.

The value of a round is a logarithm of the ratio between the arm and the base in that
round, or a part's contribution to it; see keylag.experiment.ratios.  Pairing removes
what the machine did to both arms in that round.  A control variate, if the plan
declares one, removes what it did to one of them.

Each interval misses the true value with a probability of 5 %.  For one measure of one
HTTP method, all arms of a plan share this probability for claims of a difference
(Bonferroni), and so do all parts of the mean; a part that the plan decides by is judged
by itself.  So a plan with equal arms claims none by the measure it decides by in 95 of
100 experiments.  Other measures, counts and methods are judged one by one: among all of
them, false claims are more frequent.

Failed requests are handled like this:

- Every measure leaves them out.
- A round in which an arm has too few successful requests does not count for it.
- There is no verdict on a method when more than 1 % of its requests failed, in the arm
  or in the base: the successful ones would not be representative.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from keylag.experiment.arm_pair import ArmPair, Control, Difference, FiguresByRound
from keylag.experiment.measures import measure_round, seconds_under_load
from keylag.experiment.plan import Decision
from keylag.experiment.planned_looks import PlannedLooks
from keylag.experiment.samples import Row

ALPHA: Final = 0.05
"""Probability that an interval misses the true value."""
MAX_FAILED_SHARE: Final = 0.01
"""An arm with a larger share of failed requests gets no verdict."""


@dataclass(frozen=True)
class RequestCounts:
    """How many requests of an arm were sent and failed, without warm-up."""

    requests: int
    failed: int
    by_code: Mapping[str, int] = field(default_factory=dict)
    """Failed requests by status code, or by JMeter's name of the network error."""
    broken_down: int = 0
    """Successful requests with the Server-Timing of Keylag."""

    @property
    def successful(self) -> int:
        """How many requests did not fail."""
        return self.requests - self.failed

    @property
    def has_parts(self) -> bool:
        """Whether every successful request has the Server-Timing of Keylag."""
        return self.broken_down == self.successful

    @property
    def is_sound(self) -> bool:
        """Whether few enough requests failed for a verdict."""
        return self.requests > 0 and self.failed <= MAX_FAILED_SHARE * self.requests


@dataclass(frozen=True)
class Comparison:
    """One arm compared with the base, for one HTTP method."""

    arm: str
    method: str
    rounds: int
    """Rounds in which both arms have figures."""
    sound: bool
    """Whether few enough requests failed, in both arms, for a verdict."""
    measures: Mapping[str, Difference]
    parts: Mapping[str, Difference]
    counts: Mapping[str, Difference]
    control: Control | None
    """What the differences are freed from; None if the plan declares no control."""
    has_parts: Mapping[str, bool] = field(default_factory=dict)
    """Whether Keylag breaks the requests down: of the base, and of the arm."""


def count_requests(rows: Iterable[Row]) -> dict[str, RequestCounts]:
    """Count the requests of each arm, without warm-up."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if not row.warm_up:
            groups.setdefault(row.arm, []).append(row)
    return {arm: _count_group(group) for arm, group in groups.items()}


def _count_group(rows: Sequence[Row]) -> RequestCounts:
    codes = Counter(row.code for row in rows if not row.success)
    broken_down = sum(row.success and bool(row.server_timing) for row in rows)
    return RequestCounts(len(rows), codes.total(), dict(codes), broken_down)


def http_methods(rows: Iterable[Row]) -> list[str]:
    """Return the HTTP methods of the load, in order of appearance."""
    return list(dict.fromkeys(row.method for row in rows))


def figures_by_arm(rows: Iterable[Row], method: str) -> Mapping[str, FiguresByRound]:
    """Return the figures of every arm and round for one HTTP method."""
    measured = [row for row in rows if not row.warm_up]
    seconds = seconds_under_load(measured)
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in measured:
        if row.method == method and row.success:
            groups.setdefault((row.arm, row.round), []).append(row)
    figures: dict[str, dict[int, Mapping[str, float]]] = {}
    for (arm, round_number), group in groups.items():
        values = measure_round(group, seconds[arm, round_number])
        if values is not None:
            figures.setdefault(arm, {})[round_number] = values
    return figures


def compare_arms(
    rows: Sequence[Row],
    base: str,
    arms: Sequence[str],
    decision: Decision,
    looks: PlannedLooks,
) -> list[Comparison]:
    """Compare each arm with the base, for each HTTP method of the load.

    `looks` are those of the run, each at one comparison.
    """
    no_requests = RequestCounts(0, 0)
    comparisons = []
    for method in http_methods(rows):
        figures = figures_by_arm(rows, method)
        counts = count_requests(row for row in rows if row.method == method)
        for arm in arms:
            both = {name: counts.get(name, no_requests) for name in (base, arm)}
            sound = all(one.is_sound for one in both.values())
            pair = ArmPair(
                base=figures.get(base, {}),
                arm=figures.get(arm, {}),
                decision=decision,
                looks=looks,
                arms=len(arms),
                sound=sound,
            )
            has_parts = {name: one.has_parts for name, one in both.items()}
            comparisons.append(_comparison(pair, arm, method, has_parts))
    return comparisons


def _comparison(
    pair: ArmPair, arm: str, method: str, has_parts: Mapping[str, bool]
) -> Comparison:
    return Comparison(
        arm=arm,
        method=method,
        rounds=len(pair.rounds),
        sound=pair.sound,
        measures=pair.measures(),
        parts=pair.parts(),
        counts=pair.counts(),
        control=pair.control,
        has_parts=has_parts,
    )

"""Simulate experiments to compare ways to judge them.

    .venv/bin/python bench/simulate.py
    .venv/bin/python bench/simulate.py --recording out/experiments/same/latest

Each experiment has its own seed, and the noise of `simulated_noise`.  It ends when all
arms have a verdict, or at its time limit on two cores.  Prints how often a method

- claims a difference in an A/A check (at most 5 % are allowed);
- finds in time that equal arms do not differ, and that planted effects do;
- has a wrong verdict on any arm in an experiment with planted effects;
- has an interval of equal arms that does not hold zero, at any of its looks;

and the mean duration of all these experiments.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Protocol

import click
import numpy as np

from candidates import (
    CONTROLLED,
    HOLM,
    LEAVING,
    QUANTILES,
    UNCONTROLLED,
    Candidate,
    Question,
    slices_as_independent,
)
from keylag.experiment.analysis import ALPHA
from keylag.experiment.interval import Interval
from keylag.experiment.plan import MIN_ROUNDS, SECONDS_PER_MINUTE
from keylag.experiment.planned_looks import PlannedLooks
from keylag.experiment.verdicts import (
    CANNOT_TELL,
    FASTER,
    NO_DIFFERENCE,
    SLOWER,
    verdict,
)
from recorded_noise import Recording, load_recording
from simulated_noise import ISSUE, VALIDATE, SimulatedRound

CLAIMS = (FASTER, SLOWER)
Rounds = Sequence[SimulatedRound]


class Noise(Protocol):
    """What the rounds of an experiment would be without effects, and with them."""

    @property
    def name(self) -> str:
        """The name in the title of a table."""

    def round_seconds(self, arms: int) -> float:
        """How long a round takes, with restarts and warm-up."""

    def draw_rounds(
        self, rng: np.random.Generator, slowdowns: list[float], number: int
    ) -> list[list[SimulatedRound]]:
        """Return the figures of all arms but the base, by round.

        The base has the first slowdown.
        """


@dataclass(frozen=True)
class Case:
    """A load, its arms, and the smallest effect that matters."""

    load: Noise
    effects: tuple[float, ...]
    """The slowdown of each arm but the base."""
    smallest: float
    measure: str
    limit: float
    """In minutes."""

    @property
    def planned(self) -> int:
        """The rounds of all arms that fit into the time limit."""
        return self.rounds_in(self.limit, len(self.effects))

    @property
    def most_rounds(self) -> int:
        """The rounds of one arm and the base that fit into the time limit."""
        return self.rounds_in(self.limit, 1)

    def question(self, candidate: Candidate) -> Question:
        """Return what the intervals are made for, at one comparison."""
        looks = PlannedLooks(self.planned, ALPHA)
        return Question(self.measure, looks, candidate.control, len(self.effects))

    def rounds_in(self, minutes: float, arms: int) -> int:
        """How many rounds of so many arms and the base fit."""
        return int(minutes / self.round_minutes(arms))

    def round_minutes(self, arms: int) -> float:
        """How long a round of so many arms and the base takes."""
        return self.load.round_seconds(arms + 1) / SECONDS_PER_MINUTE


@dataclass(frozen=True)
class Outcome:
    """The verdicts on the arms of one experiment, and its length."""

    verdicts: tuple[str, ...]
    missed: tuple[bool, ...]
    """Whether an interval of the arm did not hold the true effect, at any look."""
    minutes: float


def simulate_experiment(seed: int, case: Case) -> list[list[SimulatedRound]]:
    """Return the rounds of each arm but the base."""
    rng = np.random.default_rng(seed)
    slowdowns = [0.0, *case.effects]
    rounds = case.load.draw_rounds(rng, slowdowns, case.most_rounds)
    return [list(arm) for arm in zip(*rounds, strict=True)]


def judge_experiment(
    arms: Sequence[Rounds], case: Case, candidate: Candidate
) -> Outcome:
    """Return the outcome at the first look with a verdict on every arm, or the last."""
    first = case.planned if candidate.at_end_only else MIN_ROUNDS
    question = case.question(candidate)
    verdicts, missed = [CANNOT_TELL for _ in arms], [False for _ in arms]
    same = [0 for _ in arms]
    active = list(range(len(arms)))
    rounds, minutes = 0, 0.0
    while rounds < question.looks.rounds and CANNOT_TELL in verdicts:
        rounds += 1
        minutes += case.round_minutes(len(active))
        if rounds < first:
            continue
        looks = _look([arms[arm][:rounds] for arm in active], case, candidate, question)
        for arm, (text, own) in zip(active, looks, strict=True):
            same[arm] = same[arm] + 1 if text == verdicts[arm] else 1
            verdicts[arm] = text
            missed[arm] |= not own.low <= case.effects[arm] <= own.high
        if candidate.looks_to_leave and CANNOT_TELL in verdicts:
            active = [
                arm
                for arm in active
                if verdicts[arm] == CANNOT_TELL or same[arm] < candidate.looks_to_leave
            ]
            more = rounds + case.rounds_in(case.limit - minutes, len(active))
            question = replace(question, looks=question.looks.with_more(more, rounds))
    return Outcome(tuple(verdicts), tuple(missed), minutes)


def _look(
    arms: Sequence[Rounds], case: Case, candidate: Candidate, question: Question
) -> list[tuple[str, Interval]]:
    # With Holm's procedure, claims leave fewer arms to share the error probability.
    sharing = question.arms
    while True:
        looks = [
            _look_at_arm(arm, case, candidate, _at_alpha(question, ALPHA / sharing))
            for arm in arms
        ]
        claims = sum(text in CLAIMS for text, _ in looks)
        left = max(1, question.arms - claims)
        if not candidate.steps_down or left == sharing:
            return looks
        sharing = left


def _look_at_arm(
    rounds: Rounds, case: Case, candidate: Candidate, question: Question
) -> tuple[str, Interval]:
    # The question is that of a claim, which all arms share.
    def interval(question: Question) -> Interval:
        return candidate.judge(rounds, question).mapped(math.expm1)

    own = shared = interval(question)
    if not candidate.shares_no_difference:
        own = interval(_at_alpha(question, ALPHA))
    return verdict(own, case.smallest, shared=shared), own


def _at_alpha(question: Question, alpha: float) -> Question:
    return replace(question, looks=replace(question.looks, alpha=alpha))


def is_true(text: str, effect: float, smallest: float) -> bool:
    """Return whether a verdict is true, or claims nothing."""
    truths = {
        FASTER: effect < 0,
        SLOWER: effect > 0,
        NO_DIFFERENCE: abs(effect) < smallest,
    }
    return truths.get(text, True)


def table_row(
    candidate: Candidate,
    equal: Sequence[Outcome],
    planted: Sequence[Outcome],
    case: Case,
) -> list[str]:
    """Return the shares of a method, and its minutes."""
    shares = [
        fmean(any(text in CLAIMS for text in one.verdicts) for one in equal),
        fmean(text == NO_DIFFERENCE for one in equal for text in one.verdicts),
        fmean(
            text in CLAIMS and is_true(text, effect, case.smallest)
            for text, effect in _verdicts(planted, case)
            if effect
        ),
        fmean(
            not all(is_true(*found, case.smallest) for found in _verdicts([one], case))
            for one in planted
        ),
        fmean(missed for one in equal for missed in one.missed),
    ]
    minutes = fmean(one.minutes for one in chain(equal, planted))
    return [candidate.name, *(f"{share:.1%}" for share in shares), f"{minutes:.1f}"]


def _verdicts(outcomes: Sequence[Outcome], case: Case) -> Iterator[tuple[str, float]]:
    # With the true effect.
    for one in outcomes:
        yield from zip(one.verdicts, case.effects, strict=True)


HEADER = (
    *("method", "false claims, A/A", "equal arms found", "planted effects found"),
    *("any verdict wrong", "intervals miss", "minutes"),
)


def describe(case: Case) -> str:
    """Return the title of a table."""
    effects = ", ".join(f"{effect:+.0%}" for effect in case.effects)
    return (
        f"{case.load.name}, {case.measure}: planted {effects}, {case.smallest:.0%} "
        f"matter, {case.planned} rounds in {case.limit:g} minutes"
    )


def table(
    case: Case, candidates: Sequence[Candidate], experiments: int
) -> Iterator[str]:
    """Yield the lines of the Markdown table of a case."""
    equal = replace(case, effects=(0.0,) * len(case.effects))
    simulated = [
        (kind, [simulate_experiment(seed, kind) for seed in range(experiments)])
        for kind in (equal, case)
    ]
    yield f"| {' | '.join(HEADER)} |"
    yield f"|---{'|---:' * (len(HEADER) - 1)}|"
    for candidate in candidates:
        without, with_effects = (
            [judge_experiment(arms, kind, candidate) for arms in found]
            for kind, found in simulated
        )
        cells = table_row(candidate, without, with_effects, case)
        yield f"| {' | '.join(cells)} |"


FIVE_ARMS = Case(ISSUE, (-0.05, -0.05, 0.0, 0.0), 0.03, "mean", 20)
SHORT_TURNS = replace(ISSUE, turn_seconds=8)
CACHE_BACKENDS = Case(SHORT_TURNS, (-0.06, -0.06, 0.0, 0.0), 0.05, "mean", 20)
BLOG_TABLE = replace(CACHE_BACKENDS, effects=(-0.06, -0.06, 0.0, 0.0, 0.0, 0.0))
OF_FIVE_ARMS = (*UNCONTROLLED[:2], *CONTROLLED, *LEAVING, *HOLM)
TABLES: Sequence[tuple[Case, Sequence[Candidate]]] = (
    (Case(VALIDATE, (0.02,), 0.02, "p50", 10), UNCONTROLLED),
    (Case(ISSUE, (0.03,), 0.03, "mean", 20), (*UNCONTROLLED, *CONTROLLED)),
    (FIVE_ARMS, OF_FIVE_ARMS),
    (replace(FIVE_ARMS, limit=30), OF_FIVE_ARMS),
    (Case(VALIDATE, (0.05,), 0.03, "p95", 10), QUANTILES[:1] + QUANTILES[2:]),
    (Case(ISSUE, (0.1,), 0.05, "p95", 20), QUANTILES),
    (CACHE_BACKENDS, (*CONTROLLED, *LEAVING[2:])),
    (BLOG_TABLE, (*CONTROLLED, *LEAVING[2:])),
)


def recorded_table(recording: Recording) -> tuple[Case, Sequence[Candidate]]:
    """Return the table of a run: the smallest effect is planted in its first arm."""
    plan = recording.plan
    decision = plan.decision
    effects = (decision.smallest, *(0.0 for _ in plan.other_arms[1:]))
    all_rounds = plan.design.rounds * recording.seconds / SECONDS_PER_MINUTE
    limit = min(plan.design.minutes, all_rounds)
    case = Case(recording, effects, decision.smallest, decision.measure, limit)
    has_several = len(plan.other_arms) > 1
    candidates = [
        one
        for one in (*UNCONTROLLED, *CONTROLLED, *LEAVING, *HOLM)
        if one.judge is not slices_as_independent
        and (decision.control or not one.control)
        and (has_several or not (one.steps_down or one.looks_to_leave))
    ]
    return case, candidates


@click.command()
@click.option(
    "--experiments", default=1000, show_default=True, help="Experiments per table."
)
@click.option(
    "--table",
    "numbers",
    type=click.IntRange(1, len(TABLES)),
    multiple=True,
    help="Only the table with this number.",
)
@click.option(
    "--recording",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of bench/recordings, or of a run, whose rounds to draw from.",
)
def command(experiments: int, numbers: Sequence[int], recording: Path | None) -> None:
    """Simulate experiments and print the shares of their verdicts."""
    chosen = [TABLES[number - 1] for number in numbers] or TABLES
    if recording:
        chosen = [recorded_table(load_recording(recording))]
    for case, candidates in chosen:
        click.echo(f"\n{describe(case)}:\n")
        for line in table(case, candidates, experiments):
            click.echo(line)


if __name__ == "__main__":
    command()

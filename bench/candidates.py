"""Methods that experiments could judge by."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from keylag.experiment.analysis import ALPHA
from keylag.experiment.estimates import Estimate, estimate_mean
from keylag.experiment.interval import Interval
from keylag.experiment.planned_looks import PlannedLooks
from simulated_noise import SimulatedRound

MIXTURE_SD = 1.5
"""Of the confidence sequence; fastest for effects of one to two standard deviations."""
RESAMPLES = 200
Rounds = Sequence[SimulatedRound]


@dataclass(frozen=True)
class Question:
    """What an interval is made for."""

    measure: str
    looks: PlannedLooks
    control: bool
    """Whether the control is regressed out, unless it differs between the arms."""
    arms: int = 1
    """That share the error probability of that."""

    @property
    def alpha(self) -> float:
        """The probability that the interval misses."""
        return self.looks.alpha


Judge = Callable[[Rounds, Question], Interval]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A method to make intervals, and when it looks."""

    name: str
    judge: Judge
    control: bool = True
    at_end_only: bool = False
    shares_no_difference: bool = False
    """Whether the arms share the error probability of this verdict too."""
    steps_down: bool = False
    """Whether arms with a claim leave their error probability to the others (Holm)."""
    looks_to_leave: int = 0
    """The looks in a row with the same verdict after which an arm takes no more turns.

    So that the others have more of them; 0 if all arms stay.
    """


def estimate(rounds: Rounds, question: Question) -> Estimate:
    """Return the estimate of a measure, with or without the control."""
    return estimate_mean(
        [one.ratios[question.measure] for one in rounds],
        [one.control for one in rounds] if uses_control(rounds, question) else None,
    )


def uses_control(rounds: Rounds, question: Question) -> bool:
    """Return whether the control may be the same in both arms, as experiments ask."""
    looks = replace(question.looks, alpha=ALPHA / question.arms)
    found = estimate_mean([one.control for one in rounds])
    return question.control and looks.interval(found).holds_zero


def around(found: Estimate, factor: float) -> Interval:
    """Return the interval of so many standard errors on each side."""
    half_width = factor * found.standard_error
    return Interval(found.mean - half_width, found.mean, found.mean + half_width)


def sequence_factor(rounds: int, alpha: float) -> float:
    """Return half the width of a confidence sequence, in standard errors.

    T. L. Lai, "On confidence sequences", Annals of Statistics 1976; H. Wang and
    A. Ramdas, "Anytime-valid t-tests", Sequential Analysis 2025.
    """
    scale = 1 + rounds * MIXTURE_SD**2
    ratio = (math.sqrt(scale) / alpha) ** (2 / rounds)
    if ratio >= scale:
        return math.inf
    return math.sqrt((rounds - 1) * (ratio - 1) / (1 - ratio / scale))


def confidence_sequence(rounds: Rounds, question: Question) -> Interval:
    """Judge by an interval that holds after any number of rounds."""
    factor = sequence_factor(len(rounds), question.alpha)
    return around(estimate(rounds, question), factor)


def planned_looks(rounds: Rounds, question: Question) -> Interval:
    """Judge as experiments do."""
    return question.looks.interval(estimate(rounds, question))


def students_t(rounds: Rounds, question: Question) -> Interval:
    """Judge by Student's t."""
    found = estimate(rounds, question)
    return around(found, stats.t.isf(question.alpha / 2, found.degrees_of_freedom))


def slices_as_independent(rounds: Rounds, question: Question) -> Interval:
    """Judge the mean by pairs of slices, as if Keystone were never restarted."""
    values, control = zip(*(pair for one in rounds for pair in one.slices), strict=True)
    found = estimate_mean(values, control if uses_control(rounds, question) else None)
    return around(found, stats.t.isf(question.alpha / 2, found.degrees_of_freedom))


def pooled_jackknife(rounds: Rounds, question: Question) -> Interval:
    """Judge the p95 of all rounds together; its error is that of leaving out rounds."""
    everything = set(range(len(rounds)))
    whole = _pooled_ratio(rounds, everything)
    without = [_pooled_ratio(rounds, everything - {one}) for one in everything]
    pseudo = [len(rounds) * whole - (len(rounds) - 1) * one for one in without]
    found = estimate_mean(pseudo)
    return around(found, stats.t.isf(question.alpha / 2, found.degrees_of_freedom))


def pooled_bootstrap(rounds: Rounds, question: Question) -> Interval:
    """Judge the p95 of all rounds together, by resampled rounds."""
    rng = np.random.default_rng(len(rounds))
    picks = rng.integers(len(rounds), size=(RESAMPLES, len(rounds)))
    found = [_pooled_ratio(rounds, pick) for pick in picks]
    low, high = np.quantile(found, [question.alpha / 2, 1 - question.alpha / 2])
    return Interval(low, _pooled_ratio(rounds, range(len(rounds))), high)


def _pooled_ratio(rounds: Rounds, numbers: Iterable[int]) -> float:
    chosen = [rounds[number].seconds for number in numbers]
    base, arm = (np.concatenate(one) for one in zip(*chosen, strict=True))
    return float(np.log(np.quantile(arm, 0.95) / np.quantile(base, 0.95)))


UNCONTROLLED = (
    Candidate(
        name="confidence sequence",
        judge=confidence_sequence,
        control=False,
        shares_no_difference=True,
    ),
    Candidate(name="planned looks", judge=planned_looks, control=False),
    Candidate(name="t at the end", judge=students_t, control=False, at_end_only=True),
    Candidate(name="t after every round", judge=students_t, control=False),
    Candidate(
        name="slices as independent, t at the end",
        judge=slices_as_independent,
        control=False,
        at_end_only=True,
    ),
)
"""The first one is what experiments did before."""

CONTROLLED = (
    Candidate(name="confidence sequence, control", judge=confidence_sequence),
    Candidate(
        name="planned looks, control, arms share all errors",
        judge=planned_looks,
        shares_no_difference=True,
    ),
    Candidate(name="planned looks, control", judge=planned_looks),
    Candidate(name="t at the end, control", judge=students_t, at_end_only=True),
    Candidate(name="t after every round, control", judge=students_t),
    Candidate(
        name="slices as independent, t at the end, control",
        judge=slices_as_independent,
        at_end_only=True,
    ),
)

LEAVING = tuple(
    Candidate(
        name=f"planned looks{text}, arms leave after {verdicts}",
        judge=planned_looks,
        control=control,
        looks_to_leave=looks,
    )
    for text, control in (("", False), (", control", True))
    for looks, verdicts in ((1, "a verdict"), (2, "two verdicts"))
)
"""Experiments of several arms do so after two verdicts."""

HOLM = (
    Candidate(
        name="planned looks, Holm",
        judge=planned_looks,
        control=False,
        steps_down=True,
    ),
    Candidate(
        name="planned looks, control, Holm", judge=planned_looks, steps_down=True
    ),
)
"""S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
Journal of Statistics 1979; with planned looks: W. Maurer and F. Bretz, "Multiple
testing in group sequential trials using graphical approaches", Statistics in
Biopharmaceutical Research 2013."""

QUANTILES = (
    Candidate(
        name="pairs of rounds", judge=students_t, control=False, at_end_only=True
    ),
    Candidate(name="pairs of rounds, control", judge=students_t, at_end_only=True),
    Candidate(name="all rounds, jackknife", judge=pooled_jackknife, at_end_only=True),
    Candidate(name="all rounds, bootstrap", judge=pooled_bootstrap, at_end_only=True),
)
"""Methods for quantiles."""

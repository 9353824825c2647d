"""Intervals that hold together after every round of a plan.

A usual confidence interval covers the true value with 95 % for a number of rounds that
was fixed in advance.  Whoever looks after each round and stops at a good moment is
wrong far more often.  A group-sequential design spends the error probability over
looks that were planned: little at the first ones, most near the planned last round, so
that the last interval is hardly wider than a usual one (K. K. G. Lan and D. L. DeMets,
"Discrete sequential boundaries for clinical trials", Biometrika 1983; the intervals
are the repeated confidence intervals of C. Jennison and B. W. Turnbull, "Group
Sequential Methods with Applications to Clinical Trials", 2000, chapter 9).

Here, every round from MIN_ROUNDS on is a look.  The probabilities of crossing are those
of a random walk with known spread, by numerical integration (chapter 19 of the same
book).  The level of each look is then that of Student's t, for the spread is estimated;
`bench/simulate.py` measures the error that remains.

A run whose rounds become shorter, because arms left it, plans more of them.  What the
looks until then have spent stays spent, and the new plan spends the rest, so it holds
whenever the number of rounds does not depend on the values that are looked at.

A part of the error probability is kept for rounds beyond the plan, so that a run with
too few rounds for a verdict can be resumed.  There, intervals are as wide as those of
a confidence sequence, and narrower than the last planned one only after about twice as
many rounds.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from keylag.experiment.estimates import Estimate
from keylag.experiment.interval import Interval
from keylag.experiment.plan import MIN_ROUNDS

SPENT_BY_PLAN: Final = 0.9
"""Share of the error probability that the planned rounds spend."""
SPENDING_POWER: Final = 3
"""Of the share of rounds that are done (K. Kim and D. L. DeMets, 1987)."""
MAX_FORECAST_ROUNDS: Final = 100
"""Beyond the plan; longer forecasts have no use."""
MAX_STANDARD_DEVIATIONS: Final = 12.0
"""A bound above any level that floating-point numbers can tell from zero."""
NODES: Final = 200
"""Of the Gauss-Legendre quadrature, so that there are several in a step of the walk."""
MAX_BOUND_OF_NODES: Final = 60
"""With wider bounds, which runs of a thousand rounds have, it needs more of them."""


Changes = tuple[tuple[int, int], ...]
"""Each change of a plan: the rounds done until then, and those that were planned."""


def spent_share(done: float, planned: float, changes: Changes = ()) -> float:
    """Return the share of the error probability that is spent after `done` rounds."""
    if done > planned:
        return 1 - (1 - SPENT_BY_PLAN) * planned / done
    spent, since = 0.0, 0.0
    for until, rounds in chain(changes, [(done, planned)]):
        last = min(until, done)
        part, whole = (
            end**SPENDING_POWER - since**SPENDING_POWER for end in (last, rounds)
        )
        spent += (SPENT_BY_PLAN - spent) * part / whole
        if last == done:
            break
        since = last
    return spent


@lru_cache
def _quadrature(nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return points, weights


@lru_cache(maxsize=1024)
def error_levels(
    planned: int, alpha: float, rounds: int, changes: Changes = ()
) -> tuple[float, ...]:
    """Return the error level of the look after each round from MIN_ROUNDS on."""
    # The random walk of the experiments that have crossed no bound so far.
    positions, probabilities = np.zeros(1), np.ones(1)
    step, spent, levels = MIN_ROUNDS**0.5, 0.0, []
    for done in range(MIN_ROUNDS, rounds + 1):
        to_spend = alpha * spent_share(done, planned, changes) - spent

        def excess(bound: float) -> float:
            above = stats.norm.sf((bound - positions) / step)  # noqa: B023
            below = stats.norm.cdf((-bound - positions) / step)  # noqa: B023
            return float(probabilities @ (above + below)) - to_spend  # noqa: B023

        bound = optimize.brentq(excess, 0, MAX_STANDARD_DEVIATIONS * done**0.5)
        levels.append(2 * stats.norm.sf(bound / done**0.5))
        nodes, weights = _quadrature(NODES * math.ceil(bound / MAX_BOUND_OF_NODES))
        reached = bound * nodes
        density = stats.norm.pdf((reached[:, None] - positions) / step) / step
        probabilities = bound * weights * (density @ probabilities)
        positions, step, spent = reached, 1.0, spent + to_spend
    return tuple(levels)


@dataclass(frozen=True, slots=True)
class PlannedLooks:
    """Looks after every round, whose intervals together miss with probability alpha."""

    rounds: int
    """As many as are planned."""
    alpha: float
    changes: Changes = ()
    """Of the plan, in order."""

    def with_more(self, rounds: int, done: int) -> "PlannedLooks":
        """Return looks that plan more rounds, after those that are done.

        What these have spent stays spent.  The same looks if that is no more, or if
        the plan has ended.
        """
        if not done < self.rounds < rounds:
            return self
        changes = (*self.changes, (done, self.rounds))
        return replace(self, rounds=rounds, changes=changes)

    @property
    def last_forecast(self) -> int:
        """The most rounds that a forecast may name."""
        return self.rounds + MAX_FORECAST_ROUNDS

    def interval(self, estimate: Estimate, *, exact: bool = False) -> Interval:
        """Return the interval of an estimate, infinite before the first look.

        With `exact`, for counts, an estimate from equal values has no width.
        """
        half_width = self.half_width(estimate)
        if exact and estimate.rounds >= MIN_ROUNDS and math.isinf(half_width):
            half_width = 0.0
        mid = estimate.mean
        return Interval(mid - half_width, mid, mid + half_width)

    def half_width(self, estimate: Estimate) -> float:
        """Return half the width of an estimate's interval."""
        if estimate.rounds < MIN_ROUNDS:
            return math.inf
        last = max(self.last_forecast, estimate.rounds)
        levels = error_levels(self.rounds, self.alpha, last, self.changes)
        level = levels[estimate.rounds - MIN_ROUNDS]
        factor = stats.t.isf(level / 2, estimate.degrees_of_freedom)
        return float(factor) * estimate.standard_error

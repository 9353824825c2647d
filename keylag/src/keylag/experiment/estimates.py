"""Estimate a mean over rounds, with a control variate where the plan declares one.

A control variate is a figure that no arm can change, such as the password hash in an
experiment with caches.  How it differs between two arms in a round is the machine's
doing.  The estimate is the intercept of a regression: the difference of the arms in
rounds in which the control does not differ (analysis of covariance; CUPED, A. Deng
et al., "Improving the sensitivity of online controlled experiments", WSDM 2013).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of the values of rounds."""

    mean: float
    standard_error: float
    """Infinite without degrees of freedom."""
    degrees_of_freedom: int
    rounds: int

    def after(self, rounds: int) -> "Estimate":
        """Return the estimate after so many rounds with the same mean and spread."""
        return replace(
            self,
            standard_error=self.standard_error * math.sqrt(self.rounds / rounds),
            degrees_of_freedom=self.degrees_of_freedom + rounds - self.rounds,
            rounds=rounds,
        )


def estimate_mean(
    values: Sequence[float], control: Sequence[float] | None = None
) -> Estimate:
    """Return the mean of one or more values, at a control of zero if there is one.

    Equal values have an infinite standard error: they are equal by rounding.
    """
    outcome = np.asarray(values)
    if control is None or not np.ptp(control):
        return _estimate(outcome.mean(), outcome - outcome.mean(), len(values) - 1)
    covariate = np.asarray(control)
    centred = covariate - covariate.mean()
    squares = centred @ centred
    slope = centred @ outcome / squares
    return _estimate(
        outcome.mean() - slope * covariate.mean(),
        outcome - outcome.mean() - slope * centred,
        len(values) - 2,
        covariate.mean() ** 2 / squares,
    )


def _estimate(
    mean: float, residuals: NDArray[np.float64], freedom: int, distance: float = 0.0
) -> Estimate:
    # `distance` is that of the mean of the control from zero, squared, by its spread.
    error = math.inf
    if freedom > 0 and np.ptp(residuals):
        variance = residuals @ residuals / freedom
        error = math.sqrt(variance * (1 / len(residuals) + distance))
    return Estimate(float(mean), error, freedom, len(residuals))


def explained_share(values: Sequence[float], control: Sequence[float]) -> float:
    """Return the share of the variance between rounds that the control explains."""
    if len(values) < 2 or not (np.ptp(values) and np.ptp(control)):  # noqa: PLR2004
        return 0.0
    return float(np.corrcoef(values, control)[0, 1] ** 2)

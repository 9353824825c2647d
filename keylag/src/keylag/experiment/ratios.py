"""Differences as ratios: values of rounds on the logarithmic scale.

The value of a measure in a round is the logarithm of the ratio of the arm's figure to
the base's.  A part of the mean contributes to it the difference of the part divided by
the logarithmic mean of both means, so the contributions of all parts add up to the
value of the mean (the logarithmic mean Divisia index; B. W. Ang, "Decomposition
analysis for policymaking in energy", Energy Policy 2004).
"""

import math
from collections.abc import Sequence


def log_ratios(base: Sequence[float], arm: Sequence[float]) -> list[float]:
    """Return the logarithm of the ratio in each round; figures are positive."""
    return [math.log(there / here) for here, there in zip(base, arm, strict=True)]


def logarithmic_mean(one: float, other: float) -> float:
    """Return the mean that makes a difference of a logarithm of a ratio."""
    difference = other - one
    return difference / math.log1p(difference / one) if difference else one


def contributions(
    part: tuple[Sequence[float], Sequence[float]],
    whole: tuple[Sequence[float], Sequence[float]],
) -> list[float]:
    """Return what a part adds to the logarithm of the ratio of the whole, by round.

    `part` and `whole` are the figures of the base and of the arm.
    """
    return [
        (arm_part - base_part) / logarithmic_mean(base, arm)
        for base_part, arm_part, base, arm in zip(*part, *whole, strict=True)
    ]

"""Rounds of experiments with the noise that recorded runs had.

The kept runs have no samples, but their result.json has the spread of every figure
between rounds, and the number of requests.  The model is fitted to those:

- The speed of the machine drifts (an Ornstein-Uhlenbeck process) and slows down every
  part of a request alike.  Slices of 4 s make the means of two arms vary by 2 to 7 %
  between rounds (`blog-table`), slices of 0.25 s by 0.8 to 3.2 % (`planted`, `same`).
- A restart of Keystone makes its Python, and so all but the password hash, faster or
  slower for the whole round: medians differ by 0.5 to 2.3 % (`planted`, `same`).
- The hash and the rest of each request vary by themselves.  In `blog-table`, 71 % of
  the mean are the hash.  By the variances of the mean and of its parts, two thirds of
  the mean's go with the hash's.
- One request in twenty is slower, for example by a garbage collection.
- JMeter records whole milliseconds.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from keylag.experiment.measures import grouped_quantile
from keylag.experiment.plan import RESTART_SECONDS
from keylag.experiment.ratios import contributions, log_ratios

Values = NDArray[np.float64]

DRIFT = 0.10
"""Standard deviation of the logarithm of the machine's speed."""
DRIFT_SECONDS = 4.0
"""How long the speed remembers itself."""
STEP_SECONDS = 0.25
"""Resolution of the drift."""
RESTART_SPREAD = 0.01
"""Standard deviation of the logarithm of what a restart does."""
SLOW_SHARE = 0.05
SLOW_FACTOR = 1.6
"""How much longer the rest of a slow request takes."""
WARM_UP_SECONDS = 2.0


@dataclass(frozen=True)
class Workload:
    """The requests of an arm, and how the arms take turns."""

    name: str
    seconds: float
    """Of a request."""
    clients: int
    hash_share: float
    hash_spread: float
    """Standard deviation of the logarithm of the password hash."""
    rest_spread: float
    turn_seconds: float
    slice_seconds: float

    @property
    def slices(self) -> int:
        """The slices of an arm in a round."""
        return round(self.turn_seconds / self.slice_seconds)

    @property
    def requests_per_slice(self) -> int:
        """JMeter starts a request if the slice has room for two."""
        room = (self.slice_seconds - 2 * self.seconds) / self.seconds
        return self.clients * (int(room) + 1)

    def round_seconds(self, arms: int) -> float:
        """How long a round takes, with restarts and warm-up."""
        return arms * (RESTART_SECONDS + self.turn_seconds) + WARM_UP_SECONDS

    def draw_rounds(
        self, rng: np.random.Generator, slowdowns: list[float], number: int
    ) -> "list[list[SimulatedRound]]":
        """Return the figures of all arms but the base, by round."""
        return [self.draw(rng, slowdowns) for _ in range(number)]

    def draw(
        self, rng: np.random.Generator, slowdowns: list[float]
    ) -> "list[SimulatedRound]":
        """Return the figures of all arms but the base, which has the first slowdown."""
        arms = len(slowdowns)
        speed = _drift(rng, arms * self.slices, self.slice_seconds)
        order = rng.permutation(arms)
        requests = []
        for number, slowdown in enumerate(slowdowns):
            place = int(np.flatnonzero(order == number)[0])
            machine = speed[place::arms][:, None]
            hashing, rest = _requests(rng, self, machine)
            # No arm changes the hash.
            requests.append((hashing, rest * (1 + slowdown / (1 - self.hash_share))))
        base, *others = requests
        return [_compare(base, other) for other in others]


VALIDATE = Workload(
    "GET",
    seconds=0.0085,
    clients=1,
    hash_share=0.0,
    hash_spread=0.0,
    rest_spread=0.12,
    turn_seconds=8,
    slice_seconds=0.25,
)
ISSUE = Workload(
    "POST",
    seconds=0.35,
    clients=2,
    hash_share=0.71,
    hash_spread=0.18,
    rest_spread=0.43,
    turn_seconds=12,
    slice_seconds=4,
)


@dataclass(frozen=True)
class SimulatedRound:
    """The figures of one arm compared with the base."""

    ratios: dict[str, float]
    """Logarithms of the ratios of the measures."""
    control: float
    """What the password hash contributes to that of the mean."""
    slices: list[tuple[float, float]] = field(default_factory=list)
    """The same two values of the mean for each pair of slices."""
    seconds: tuple[Values, Values] = (np.zeros(0), np.zeros(0))
    """The requests of the base and of the arm, as JMeter records them."""

    def with_effect(self, slowdown: float) -> "SimulatedRound":
        """Return the round with all measures longer by a share."""
        effect = math.log1p(slowdown)
        ratios = {name: value + effect for name, value in self.ratios.items()}
        return replace(self, ratios=ratios)


def _drift(rng: np.random.Generator, slices: int, slice_seconds: float) -> Values:
    # The mean of the logarithm of the speed in each slice of all arms in turn.
    steps = round(slice_seconds / STEP_SECONDS)
    memory = math.exp(-STEP_SECONDS / DRIFT_SECONDS)
    shocks = rng.normal(0, DRIFT * math.sqrt(1 - memory**2), slices * steps)
    speed = np.empty(slices * steps)
    now = rng.normal(0, DRIFT)
    for step, shock in enumerate(shocks):
        speed[step] = now
        now = memory * now + shock
    return np.asarray(speed.reshape(slices, steps).mean(axis=1))


def _requests(
    rng: np.random.Generator, load: Workload, machine: Values
) -> tuple[Values, Values]:
    # The seconds of the hash and of the rest, by slice and request.
    shape = (load.slices, load.requests_per_slice)
    restart = rng.normal(0, RESTART_SPREAD)
    slow = np.where(rng.random(shape) < SLOW_SHARE, SLOW_FACTOR, 1.0)
    hashing = np.exp(machine + rng.normal(0, load.hash_spread, shape))
    rest = slow * np.exp(machine + restart + rng.normal(0, load.rest_spread, shape))
    return (
        load.seconds * load.hash_share * hashing,
        load.seconds * (1 - load.hash_share) * rest,
    )


def _compare(base: tuple[Values, Values], arm: tuple[Values, Values]) -> SimulatedRound:
    seconds = [np.round(hashing + rest, 3).ravel() for hashing, rest in (base, arm)]
    before, after = map(_measures, seconds)
    ratios = {name: math.log(after[name] / before[name]) for name in before}
    whole = [array.mean().reshape(1) for array in (*base, *arm)]
    slices = [array.mean(axis=1) for array in (*base, *arm)]
    [(_, control)] = _mean_and_control(*whole)
    return SimulatedRound(
        ratios, control, _mean_and_control(*slices), (seconds[0], seconds[1])
    )


def _measures(seconds: Values) -> dict[str, float]:
    values = seconds.tolist()
    return {
        "mean": float(seconds.mean()),
        "p50": grouped_quantile(values, 0.5),
        "p95": grouped_quantile(values, 0.95),
    }


def _mean_and_control(
    base_hash: Values, base_rest: Values, arm_hash: Values, arm_rest: Values
) -> list[tuple[float, float]]:
    base, arm = (base_hash + base_rest).tolist(), (arm_hash + arm_rest).tolist()
    control = contributions((base_hash.tolist(), arm_hash.tolist()), (base, arm))
    return list(zip(log_ratios(base, arm), control, strict=True))

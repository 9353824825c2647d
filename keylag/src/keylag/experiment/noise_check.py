"""The first rounds of a run, of about a minute, also measure the noise.

They count like all others.  The check ends before the first look.  It can end the run,
but claim nothing, and the intervals hold whenever a run ends; so it costs no error
probability and no time.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from typing import Final

from pydantic import TypeAdapter

from keylag.experiment.analysis import figures_by_arm
from keylag.experiment.load_monitor import Disturbance, LoadMonitor, combine
from keylag.experiment.noise import NoiseForecast, forecast_noise
from keylag.experiment.obstacles import find_obstacles_under_load
from keylag.experiment.plan import MIN_ROUNDS, Plan
from keylag.experiment.run_folder import RunState
from keylag.experiment.samples import Row
from keylag.experiment.saturation import find_saturated_arms

CHECK_SECONDS: Final = 55.0
"""About a minute: two rounds of two arms that are a little fast are enough."""
MIN_CHECK_ROUNDS: Final = 2
MAX_CHECK_ROUNDS: Final = MIN_ROUNDS - 1
"""The next one is the first look."""
NO_OBSTACLE: Final = (
    "Keylag found nothing on this machine that is in the way: restarts and requests "
    "differ by themselves."
)


@dataclass(frozen=True)
class NoiseCheck:
    """What the first rounds of a run say about the rest."""

    rounds: int
    forecast: NoiseForecast
    disturbance: Disturbance
    saturated: Sequence[str]
    """A sentence for each arm whose workers are saturated."""

    @property
    def obstacles(self) -> list[str]:
        """Sentences about what disturbed the check."""
        return [*find_obstacles_under_load(self.disturbance), *self.saturated]


def load_noise_check(state: RunState) -> NoiseCheck | None:
    """Return the noise check of a run; None if it has not ended yet."""
    return TypeAdapter(NoiseCheck | None).validate_python(state.noise_check)


def load_disturbances(state: RunState) -> list[Disturbance]:
    """Return what happened to the machine in each round whose load was watched."""
    return TypeAdapter(list[Disturbance]).validate_python(state.disturbances)


@dataclass
class NoiseChecker:
    """Watches the load of each round, and measures the noise in the first ones."""

    plan: Plan
    monitor: LoadMonitor
    may_stop: bool
    """Whether the run ends if the asked interval is out of reach."""
    stops_run: bool = field(default=False, init=False)

    def watch(self) -> AbstractContextManager[None]:
        """Return a context that measures what disturbs the load of a round."""
        return self.monitor.watch()

    def end_round(self, state: RunState, rows: Sequence[Row]) -> None:
        """Record the round in the state; after the last one of the check, that too."""
        state.disturbances.append(asdict(self.monitor.latest))
        if state.noise_check or not _is_last_round(state):
            return
        check = self._measure(state, rows)
        state.noise_check = asdict(check)
        if check.forecast.is_out_of_reach and self.may_stop:
            self.stops_run = True
            state.events.append(" ".join(_reasons(check)))

    def _measure(self, state: RunState, rows: Sequence[Row]) -> NoiseCheck:
        figures = figures_by_arm(rows, self.plan.decision.method)
        return NoiseCheck(
            rounds=state.rounds,
            forecast=forecast_noise(self.plan, state, rows),
            disturbance=combine(load_disturbances(state)),
            saturated=list(find_saturated_arms(self.plan, figures)),
        )


def _is_last_round(state: RunState) -> bool:
    took_a_minute = state.seconds >= CHECK_SECONDS
    rounds = state.rounds
    return rounds == MAX_CHECK_ROUNDS or (
        took_a_minute and MIN_CHECK_ROUNDS <= rounds < MAX_CHECK_ROUNDS
    )


def _reasons(check: NoiseCheck) -> Iterator[str]:
    yield from check.forecast.describe()
    yield from check.obstacles or [NO_OBSTACLE]
    yield (
        "Set a longer --minutes, more `rounds` if the plan limits them, or a larger "
        "`smallest`, or start with --anyway."
    )

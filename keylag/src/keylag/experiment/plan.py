"""The plan of an experiment: arms, load, design and decision."""

import os
import re
from collections.abc import Collection
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from keylag.errors import WrongUsageError
from keylag.experiment.measures import MEASURES, PARTS
from keylag.experiment.settings import Arm, Properties, Scalar, StrictModel

MIN_ROUNDS: Final = 5
"""With fewer rounds the interval is infinite or too wide for a verdict."""
RESTART_SECONDS: Final = 6.0
"""Time to restart the Keystone and JMeter of one arm; measured on two processors."""
SECONDS_PER_MINUTE: Final = 60
MAX_MINUTES: Final = 24 * 60
ArmName = Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
"""The name of an arm is the name of its folder."""
VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)
"""A variable of the environment, as `os.path.expandvars` takes it."""


def variables_in(text: str) -> list[str]:
    """Return the names of the environment's variables that a setting has."""
    return [short or long for short, long in VARIABLE.findall(text)]


def with_variables(text: str) -> str:
    """Return a setting with the values of the environment's variables in it.

    A plan is read without them, so that a run can be reported elsewhere.  Raises
    WrongUsageError if one is not set, or empty.
    """
    if missing := [name for name in variables_in(text) if not os.environ.get(name)]:
        message = (
            f"The plan has {text}, and {', '.join(missing)} is not set. Export it, or "
            "write the value into a plan of your own."
        )
        raise WrongUsageError(message)
    return os.path.expandvars(text)


def jmeter_properties(values: Properties) -> dict[str, str]:
    """Format the properties of a load for JMeter."""
    return {name: _jmeter_property(value) for name, value in values.items()}


def _jmeter_property(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Load(StrictModel):
    """The load that each arm gets."""

    plan: str
    """Name of a load plan in `jmeter-plans/`."""
    properties: Properties = Field(default={})


class Design(StrictModel):
    """Durations and the number of rounds."""

    warm_up_seconds: Annotated[float, Field(ge=0, le=600)] = 3.0
    """Per round, all arms at once; for a switched Keystone, per turn."""
    turn_seconds: Annotated[float, Field(ge=1, le=3600)] = 8.0
    """Load on each arm per round, after the warm-up."""
    slice_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 0.25
    """How long an arm is under load before the next one; a turn is a sum of slices."""
    rounds: Annotated[int, Field(ge=MIN_ROUNDS, le=1000)] = 40
    """At most; a verdict on every arm or the time limit ends the run earlier."""
    minutes: Annotated[float, Field(gt=0, le=MAX_MINUTES)] = 10.0
    """Time limit of the run, from the time when all arms have started."""
    ends_at_verdict: bool = True
    """Whether an arm takes no more turns once it has its verdict.

    And whether the run ends before its limits as soon as every arm has one.
    """

    def load_seconds(self, arms: int) -> float:
        """Return how long the load of `arms` arms takes that warm up together."""
        return self.warm_up_seconds + arms * self.turn_seconds

    @property
    def slice_ms(self) -> int:
        """The slice in milliseconds, as the load plans take it."""
        return round(1000 * self.slice_seconds)


def _checked_measure(name: str) -> str:
    names = (*MEASURES, *PARTS)
    if name not in names:
        kind, reason = "unknown_measure", "choose one of {names}"
        raise PydanticCustomError(kind, reason, {"names": ", ".join(names)})
    return name


class Decision(StrictModel):
    """What the verdict is about."""

    measure: Annotated[str, AfterValidator(_checked_measure)] = "p50"
    """A measure, or a part of the mean; see keylag.experiment.measures."""
    method: Literal["POST", "GET", "DELETE"]
    smallest: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """The smallest effect, as a share of the base's figure; of its mean for a part."""
    control: str = ""
    """The category that no arm changes; see keylag.experiment.estimates."""

    @property
    def saturates(self) -> bool:
        """Whether the load saturates the arms on purpose."""
        return self.measure == "throughput"


class RemoteKeystone(StrictModel):
    """Keystones that run already: one that commands switch, or one for each arm."""

    url: str = ""
    """Of the one Keystone that commands switch; empty if each arm has a `url`."""
    users: str
    """A CSV as for `keylag load`, relative to the working directory."""


class Plan(StrictModel):
    """One experiment."""

    question: str
    base: str
    remote: RemoteKeystone | None = None
    """The remote Keystones; without them, each arm is a stack of its own."""
    load: Load
    design: Design = Design()
    decision: Decision
    arms: Annotated[dict[ArmName, Arm], Field(min_length=1)]

    @property
    def other_arms(self) -> list[str]:
        """The names of the arms that are compared with the base."""
        return [name for name in self.arms if name != self.base]

    @property
    def arm_names(self) -> list[str]:
        """The names of all arms, the base first."""
        return [self.base, *self.other_arms]

    @property
    def is_switched(self) -> bool:
        """Whether the arms are one Keystone, which commands switch between them."""
        return bool(self.remote and self.remote.url)

    def keystone_url(self, arm: str) -> str:
        """Return the URL of an arm's Keystone that runs already.

        Raises WrongUsageError if a variable in it is not set.
        """
        of_all = self.remote.url if self.remote else ""
        return with_variables(self.arms[arm].url or of_all)

    @property
    def round_load_seconds(self) -> float:
        """Seconds of load in a round; a switched Keystone warms up for each arm."""
        arms = len(self.arms)
        if self.is_switched:
            return arms * self.design.load_seconds(1)
        return self.design.load_seconds(arms)

    @property
    def round_seconds(self) -> float:
        """About how long a round takes, with the restarts."""
        return self.round_load_seconds + len(self.arms) * RESTART_SECONDS

    @property
    def rounds_in_time(self) -> int:
        """The rounds that fit into the time limit, at most those of the design."""
        in_time = int(self.design.minutes * SECONDS_PER_MINUTE / self.round_seconds)
        return min(self.design.rounds, in_time)

    def rounds_at_pace(self, rounds: int, seconds: float, pace_seconds: float) -> int:
        """Return the rounds that fit: `rounds` took `seconds`, each other the pace."""
        left = self.design.minutes * SECONDS_PER_MINUTE - seconds
        return min(self.design.rounds, rounds + int(left // pace_seconds))

    @property
    def planned_rounds(self) -> int:
        """The rounds that the intervals are made for, before any has been timed."""
        return max(MIN_ROUNDS, self.rounds_in_time)

    def with_minutes(self, minutes: float | None) -> Self:
        """Return the plan with another time limit; None keeps the plan's."""
        if minutes is None:
            return self
        design = self.design.model_copy(update={"minutes": minutes})
        return self.model_copy(update={"design": design})

    def with_arms(self, names: Collection[str]) -> Self:
        """Return the plan with some of its arms."""
        kept = {name: arm for name, arm in self.arms.items() if name in names}
        return self.model_copy(update={"arms": kept})

    def resolved_arm(self, name: str) -> Arm:
        """Return an arm with the settings that it inherits from the base."""
        base = self.arms[self.base]
        return base if name == self.base else self.arms[name].merged_over(base)

    def load_properties(self, name: str) -> dict[str, str]:
        """Return the JMeter properties of an arm; all virtual users start at once."""
        chosen = {**self.load.properties, **self.resolved_arm(name).properties}
        return {"ramp_seconds": "0"} | jmeter_properties(chosen)

"""A plan: what is compared, on which load, for how long, and what would matter."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field

from keylag.experiment.settings import Arm, Properties, Scalar, StrictModel

MIN_ROUNDS: Final = 5
"""With fewer an interval is infinite, or so wide that it tells nothing."""
MAX_MINUTES: Final = 24 * 60
ArmName = Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
"""It names a folder."""


def jmeter_properties(values: Properties) -> dict[str, str]:
    """Write the properties of a load as JMeter reads them."""
    return {name: _jmeter_property(value) for name, value in values.items()}


def _jmeter_property(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Load(StrictModel):
    """What is sent to each arm."""

    plan: str
    properties: Properties = Field(default={})


class Design(StrictModel):
    """How long it takes."""

    warm_up_seconds: Annotated[float, Field(ge=0, le=600)] = 3.0
    """In each round; all arms at once, but elsewhere in each turn."""
    turn_seconds: Annotated[float, Field(ge=1, le=3600)] = 8.0
    """After the warm-up, for each arm in each round."""
    slice_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 0.25
    """Of a turn, until it is the next arm's; a whole turn at once if it is as long."""
    rounds: Annotated[int, Field(ge=MIN_ROUNDS, le=1000)] = 40
    """At most; fewer if it is clear before, or the time is over."""
    minutes: Annotated[float, Field(gt=0, le=MAX_MINUTES)] = 10.0

    def load_seconds(self, arms: int) -> float:
        """Return how long the load of so many arms takes that warm up together."""
        return self.warm_up_seconds + arms * self.turn_seconds

    @property
    def slice_ms(self) -> int:
        """A slice as the load plans are told it, in milliseconds."""
        return round(1000 * self.slice_seconds)


class Decision(StrictModel):
    """What the answer is about."""

    measure: Literal["p50", "p95", "mean", "throughput"] = "p50"
    method: Literal["POST", "GET", "DELETE"]
    smallest: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """The smallest difference that matters, as a share of the base's."""


class RemoteKeystone(StrictModel):
    """A Keystone that is there already; its arms are made by commands."""

    url: str
    users: str
    """A CSV, as for `keylag load`; from the folder where the command is run."""


class Plan(StrictModel):
    """One experiment."""

    question: str
    base: str
    elsewhere: RemoteKeystone | None = None
    """Without it, each arm is a stack of its own."""
    load: Load
    design: Design = Design()
    decision: Decision
    arms: Annotated[dict[ArmName, Arm], Field(min_length=1)]

    @property
    def other_arms(self) -> list[str]:
        """The arms that are compared with the base."""
        return [name for name in self.arms if name != self.base]

    @property
    def arm_names(self) -> list[str]:
        """All arms, the base first."""
        return [self.base, *self.other_arms]

    @property
    def round_load_seconds(self) -> float:
        """How long the load of a round takes; elsewhere each arm warms up by itself."""
        arms = len(self.arms)
        if self.elsewhere:
            return arms * self.design.load_seconds(1)
        return self.design.load_seconds(arms)

    def with_minutes(self, minutes: float | None) -> Self:
        """Return the plan with another limit of its time, if one is given."""
        if minutes is None:
            return self
        design = self.design.model_copy(update={"minutes": minutes})
        return self.model_copy(update={"design": design})

    def resolved_arm(self, name: str) -> Arm:
        """Return an arm with what it takes from the base."""
        base = self.arms[self.base]
        return base if name == self.base else self.arms[name].merged_over(base)

    def load_properties(self, name: str) -> dict[str, str]:
        """Return an arm's load as JMeter takes it; all virtual users start at once."""
        chosen = {**self.load.properties, **self.resolved_arm(name).properties}
        return {"ramp_seconds": "0"} | jmeter_properties(chosen)

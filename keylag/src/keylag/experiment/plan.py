"""A plan: what is compared, on which load, for how long, and what would matter."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field

from keylag.experiment.settings import Arm, Properties, Scalar, Strict

FEWEST_BLOCKS: Final = 5
"""With fewer an interval is infinite, or so wide that it tells nothing."""
MOST_MINUTES: Final = 24 * 60
ArmName = Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
"""It names a folder."""


def as_properties(values: Properties) -> dict[str, str]:
    """Write the properties of a load as JMeter reads them."""
    return {name: _as_property(value) for name, value in values.items()}


def _as_property(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Load(Strict):
    """What is sent to each arm."""

    plan: str
    properties: Properties = Field(default={})


class Design(Strict):
    """How long it takes."""

    warm_up_seconds: Annotated[float, Field(ge=0, le=600)] = 3.0
    """In each block; all arms at once, but elsewhere in each turn."""
    turn_seconds: Annotated[float, Field(ge=1, le=3600)] = 8.0
    """After the warm-up, for each arm in each block."""
    slice_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 0.25
    """Of a turn, until it is the next arm's; a whole turn at once if it is as long."""
    blocks: Annotated[int, Field(ge=FEWEST_BLOCKS, le=1000)] = 40
    """At most; fewer if it is clear before, or the time is over."""
    minutes: Annotated[float, Field(gt=0, le=MOST_MINUTES)] = 10.0

    def load_seconds(self, arms: int) -> float:
        """Return how long the load of so many arms takes that warm up together."""
        return self.warm_up_seconds + arms * self.turn_seconds

    @property
    def slice_ms(self) -> int:
        """A slice as the load plans are told it, in milliseconds."""
        return round(1000 * self.slice_seconds)


class Decision(Strict):
    """What the answer is about."""

    measure: Literal["p50", "p95", "mean", "throughput"] = "p50"
    method: Literal["POST", "GET", "DELETE"]
    smallest: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """The smallest difference that matters, as a share of the base's."""


class Elsewhere(Strict):
    """A Keystone that is there already; its arms are made by commands."""

    url: str
    users: str
    """A CSV, as for `keylag load`; from the folder where the command is run."""


class Plan(Strict):
    """One experiment."""

    question: str
    base: str
    elsewhere: Elsewhere | None = None
    """Without it, each arm is a stack of its own."""
    load: Load
    design: Design = Design()
    decision: Decision
    arms: Annotated[dict[ArmName, Arm], Field(min_length=1)]

    @property
    def others(self) -> list[str]:
        """The arms that are compared with the base."""
        return [name for name in self.arms if name != self.base]

    @property
    def order(self) -> list[str]:
        """All arms, the base first."""
        return [self.base, *self.others]

    @property
    def load_seconds(self) -> float:
        """How long the load of a block takes; elsewhere each arm warms up by itself."""
        arms = len(self.arms)
        if self.elsewhere:
            return arms * self.design.load_seconds(1)
        return self.design.load_seconds(arms)

    def bounded(self, minutes: float | None) -> Self:
        """Return the plan with another limit of its time, if one is given."""
        if minutes is None:
            return self
        design = self.design.model_copy(update={"minutes": minutes})
        return self.model_copy(update={"design": design})

    def whole_arm(self, name: str) -> Arm:
        """Return an arm with what it takes from the base."""
        base = self.arms[self.base]
        return base if name == self.base else self.arms[name].over(base)

    def properties(self, name: str) -> dict[str, str]:
        """Return an arm's load as JMeter takes it; all virtual users start at once."""
        chosen = {**self.load.properties, **self.whole_arm(name).properties}
        return {"ramp_seconds": "0"} | as_properties(chosen)

"""A plan: what is compared, on which load, for how long, and what would matter.

    plan = read(Path("experiments/cache-backends.toml"))

A plan that is wrong or contradicts itself is refused with the line; nothing has been
started then.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from keylag import plans
from keylag.experiment.lines import Place, line_of
from keylag.services.keystone import CACHE_BACKENDS

FEWEST_BLOCKS: Final = 5
"""With fewer an interval is infinite, or so wide that it tells nothing."""
OURS: Final = ("loops", "duration_seconds", "host", "port", "protocol", "users_file")
"""Properties of a load plan that an experiment sets by itself."""
GIVEN_AS: Final = {
    ("cache", "backend"): "cache",
    ("cache", "memcache_servers"): "cache",
    ("cache", "redis_server"): "cache",
    ("database", "connection"): "mariadb",
}
"""Options of keystone.conf that the stack sets, and the setting that means them."""

Scalar = str | int | float | bool
ArmName = Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
"""It names a folder."""
Sections = Mapping[str, Mapping[str, Scalar]]
"""keystone.conf: options by section."""


class PlanError(Exception):
    """The plan cannot be run; the text has file, line and reason of each mistake."""


class _Strict(BaseModel):
    """No key that is not known, no value of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Arm(_Strict):
    """How one Keystone differs from the base; what is not given is the base's."""

    cache: str = "memcache_pool"
    """A key of keystone.CACHE_BACKENDS."""
    processes: Annotated[int, Field(ge=1, le=64)] = 2
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    """Of each process."""
    keystone: Sections = {}
    """Options of keystone.conf by section."""
    mariadb: Mapping[str, Scalar] = {}
    """Variables of the database server."""
    module: str = "keylag_otel.wsgi:application"
    """The WSGI application; it may lie beside the plans."""
    environment: Mapping[str, str] = {}
    """More variables for Keystone's workers."""
    users: Annotated[int, Field(ge=1, le=100_000)] = 100
    revocation_events: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    revoked_by: Literal["audit_id", "audit_chain_id"] = "audit_id"

    def over(self, base: Self) -> Self:
        """Return the base with what this arm says; tables are merged."""
        given = self.model_dump(exclude_unset=True)
        return type(self).model_validate(_merged(base.model_dump(), given))


class Load(_Strict):
    """What is sent to each arm in its turn."""

    plan: str
    properties: Mapping[str, str | int] = {}

    @property
    def chosen(self) -> dict[str, str]:
        """The properties as JMeter takes them; all virtual users start at once."""
        return {"ramp_seconds": "0"} | {k: str(v) for k, v in self.properties.items()}


class Design(_Strict):
    """How long it takes."""

    warm_up_seconds: Annotated[float, Field(ge=0, le=600)] = 3.0
    turn_seconds: Annotated[float, Field(ge=1, le=3600)] = 8.0
    """After the warm-up, for each arm in each block."""
    blocks: Annotated[int, Field(ge=FEWEST_BLOCKS, le=1000)] = 40
    """At most; fewer if it is clear before, or the time is over."""
    minutes: Annotated[float, Field(gt=0, le=24 * 60)] = 10.0


class Decision(_Strict):
    """What the answer is about."""

    measure: Literal["p50", "p95", "mean", "throughput"] = "p50"
    method: Literal["POST", "GET", "DELETE"]
    smallest: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """The smallest difference that matters, as a share of the base's."""


class Plan(_Strict):
    """One experiment."""

    question: str
    base: str
    load: Load
    design: Design = Design()
    decision: Decision
    arms: Annotated[dict[ArmName, Arm], Field(min_length=2)]

    @property
    def others(self) -> list[str]:
        """The arms that are compared with the base."""
        return [name for name in self.arms if name != self.base]

    @property
    def order(self) -> list[str]:
        """All arms, the base first."""
        return [self.base, *self.others]

    def whole_arm(self, name: str) -> Arm:
        """Return an arm with what it takes from the base."""
        base = self.arms[self.base]
        return base if name == self.base else self.arms[name].over(base)


def read(path: Path) -> Plan:
    """Read a plan; raises PlanError with every mistake that was found."""
    try:
        text = path.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"{path}: {error}"
        raise PlanError(message) from error
    try:
        plan = Plan.model_validate(raw)
        mistakes = list(contradictions(plan))
    except ValidationError as error:
        mistakes = [(_place(found["loc"]), found["msg"]) for found in error.errors()]
    refuse(path, text, mistakes)
    return plan


def refuse(path: Path, text: str, mistakes: list[tuple[Place, str]]) -> None:
    """Raise PlanError with the line of each mistake, if there is one."""
    if mistakes:
        lines = [
            f"{path}:{line_of(text, place)}: {'.'.join(place) or 'plan'}: {why}"
            for place, why in mistakes
        ]
        raise PlanError("\n".join(lines))


def contradictions(plan: Plan) -> Iterator[tuple[Place, str]]:
    """Say what cannot be, of a plan whose values are right one by one."""
    if plan.base not in plan.arms:
        yield ("base",), f"there is no such arm; there are {', '.join(plan.arms)}"
    yield from _load_mistakes(plan)
    least = FEWEST_BLOCKS * len(plan.arms) * _turn_seconds(plan.design)
    if least > plan.design.minutes * 60:
        why = (
            f"{FEWEST_BLOCKS} blocks, the fewest that tell anything, take {least:.0f} s"
        )
        yield ("design", "minutes"), why
    for name, arm in plan.arms.items():
        yield from _arm_mistakes(("arms", name), arm)


def _turn_seconds(design: Design) -> float:
    return design.warm_up_seconds + design.turn_seconds


def _load_mistakes(plan: Plan) -> Iterator[tuple[Place, str]]:
    place = ("load", "properties")
    try:
        load = plans.find(plan.load.plan)
    except plans.PlanError as error:
        yield ("load", "plan"), str(error)
        return
    for name in plan.load.properties:
        if name in (*OURS, *plans.SECRET):
            yield (*place, name), "an experiment sets this by itself"
        elif name not in load.defaults:
            yield (*place, name), f"{load.name} takes {', '.join(load.defaults)}"
    sends = f'testname="{plan.decision.method} '
    if sends not in load.path.read_text(encoding="utf-8"):
        why = f"{load.name} sends no {plan.decision.method}"
        yield ("decision", "method"), why


def _arm_mistakes(place: Place, arm: Arm) -> Iterator[tuple[Place, str]]:
    if arm.cache not in CACHE_BACKENDS:
        yield (*place, "cache"), f"there are {', '.join(CACHE_BACKENDS)}"
    for section, options in arm.keystone.items():
        for option in options:
            if setting := GIVEN_AS.get((section, option)):
                where = (*place, "keystone", section, option)
                yield where, f"the stack sets this; give it as `{setting}`"


def _place(found: tuple[int | str, ...]) -> Place:
    return tuple(str(key) for key in found)


def _merged(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, `given` first; a table in both is merged."""
    merged = dict(base)
    for key, value in given.items():
        inner = isinstance(value, dict) and isinstance(base.get(key), Mapping)
        merged[key] = _merged(base[key], value) if inner else value
    return merged

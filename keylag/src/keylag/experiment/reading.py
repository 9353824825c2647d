"""From a file to a plan, or to what is wrong with it.

    plan = read(Path("experiments/cache-backends.toml"))

A plan that is wrong or contradicts itself is refused with the line; nothing has been
started then.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from keylag import load_plans, load_target
from keylag.errors import WrongUsageError
from keylag.experiment.lines import Place, line_of
from keylag.experiment.plan import (
    FEWEST_BLOCKS,
    Decision,
    Design,
    Elsewhere,
    Load,
    Plan,
    as_properties,
)
from keylag.experiment.settings import ELSEWHERE, Arm, Properties
from keylag.services.keystone import CACHE_BACKENDS
from keylag.suggestions import did_you_mean
from keylag.tools.venvs import KEYSTONE_TOOLS

SLICES: Final = ("slice_ms", "slice_loads", "slice_number", "slice_after_seconds")
"""What a load plan has to take so that arms can take turns."""
OURS: Final = (
    *("loops", "duration_seconds", "host", "port", "protocol", "users_file"),
    *SLICES,
)
"""Properties of a load plan that an experiment sets by itself."""
GIVEN_AS: Final = {
    ("cache", "backend"): "cache",
    ("cache", "memcache_servers"): "cache",
    ("cache", "redis_server"): "cache",
    ("database", "connection"): "mariadb",
}
"""Options of keystone.conf that the stack sets, and the setting that means them."""

TABLES: Final[Mapping[str, type[BaseModel]]] = {
    "load": Load,
    "design": Design,
    "decision": Decision,
    "elsewhere": Elsewhere,
    "arms": Arm,
}
"""What each table of a plan is read as."""

NUMBERS: Final = ("float_type", "int_type")
"""What pydantic calls a number that is none."""

Mistake = tuple[Place, str]
"""Where it stands, and why it is one."""


class PlanError(WrongUsageError):
    """The plan cannot be run; the text has file, line and reason of each mistake."""


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
        mistakes = [_mistake(found) for found in error.errors()]
    refuse(path, text, mistakes)
    return plan


def bounded(plan: Plan, minutes: float | None) -> Plan:
    """Return a plan with another limit of its time; PlanError if that is too short."""
    shorter = plan.bounded(minutes)
    for _, why in _design_mistakes(shorter):
        message = f"--minutes {minutes:g}: {why}"
        raise PlanError(message)
    return shorter


def refuse(path: Path, text: str, mistakes: list[Mistake]) -> None:
    """Raise PlanError with the line of each mistake, if there is one."""
    if mistakes:
        lines = [
            f"{path}:{line_of(text, place)}: {'.'.join(place) or 'plan'}: {why}"
            for place, why in mistakes
        ]
        raise PlanError("\n".join(lines))


def contradictions(plan: Plan) -> Iterator[Mistake]:
    """Say what cannot be, of a plan whose values are right one by one."""
    yield from _load_mistakes(plan)
    yield from _design_mistakes(plan)
    if plan.base not in plan.arms:
        yield ("base",), f"there is no such arm; there are {', '.join(plan.arms)}"
        return
    if plan.elsewhere:
        yield from _elsewhere_mistakes(plan, plan.elsewhere)
    else:
        yield from _own_mistakes(plan)


def _design_mistakes(plan: Plan) -> Iterator[Mistake]:
    design = plan.design
    if (least := FEWEST_BLOCKS * plan.load_seconds) > design.minutes * 60:
        why = (
            f"{FEWEST_BLOCKS} blocks, the fewest that tell anything, take {least:.0f} s"
        )
        yield ("design", "minutes"), why
    if round(1000 * design.turn_seconds) % design.slice_ms:
        yield ("design", "turn_seconds"), "it has to be a whole number of slices"


def _load_mistakes(plan: Plan) -> Iterator[Mistake]:
    try:
        load = load_plans.find_plan(plan.load.plan)
    except load_plans.PlanError as error:
        yield ("load", "plan"), str(error)
        return
    common = plan.load.properties
    yield from _property_mistakes(("load", "properties"), common, load)
    ours = replace(load, defaults={**load.defaults, **as_properties(common)})
    for name, arm in plan.arms.items():
        place = ("arms", name, "properties")
        yield from _property_mistakes(place, arm.properties, ours)
    if "target_port" in load.defaults and not plan.elsewhere:
        yield ("load", "plan"), "it calls a service, and an arm is a Keystone alone"
    sends = f'testname="{plan.decision.method} '
    if sends not in load.path.read_text(encoding="utf-8"):
        why = f"{load.name} sends no {plan.decision.method}"
        yield ("decision", "method"), why


def _property_mistakes(
    place: Place, properties: Properties, load: load_plans.LoadPlan
) -> Iterator[Mistake]:
    own = (*OURS, *load_plans.SECRET_PROPERTIES)
    given = {name: value for name, value in properties.items() if name not in own}
    for name in properties.keys() - given.keys():
        yield (*place, name), "an experiment sets this by itself"
    for name, why in load.find_mistakes(as_properties(given)):
        yield (*place, name), why


def _own_mistakes(plan: Plan) -> Iterator[Mistake]:
    """Say what is wrong with arms that are stacks of ours."""
    if not plan.others:
        yield ("arms",), "one arm alone is compared with nothing"
    for name, arm in plan.arms.items():
        place = ("arms", name)
        whole = plan.whole_arm(name)
        if arm.cache not in CACHE_BACKENDS:
            yield (*place, "cache"), f"there are {', '.join(CACHE_BACKENDS)}"
        if arm.release not in KEYSTONE_TOOLS:
            yield (*place, "release"), f"there are {', '.join(KEYSTONE_TOOLS)}"
        if arm.switch:
            yield (*place, "switch"), "only for an arm of a Keystone [elsewhere]"
        if whole.query_cache and not whole.proxysql:
            yield (*place, "query_cache"), "it is ProxySQL's; `proxysql = true`"
        if whole.hung_cache and whole.cache == "null":
            yield (*place, "hung_cache"), "without a cache there is no server to hang"
        yield from _option_mistakes(place, arm)


def _option_mistakes(place: Place, arm: Arm) -> Iterator[Mistake]:
    for section, options in arm.keystone.items():
        for option in options:
            if setting := GIVEN_AS.get((section, option)):
                where = (*place, "keystone", section, option)
                yield where, f"the stack sets this; give it as `{setting}`"


def _elsewhere_mistakes(plan: Plan, there: Elsewhere) -> Iterator[Mistake]:
    """Say what is wrong with arms of a Keystone that is not ours."""
    for name, arm in plan.arms.items():
        for setting in sorted(arm.model_fields_set - ELSEWHERE):
            why = "that Keystone is not ours to change; `switch` is a command that does"
            yield ("arms", name, setting), why
        if plan.others and not arm.switch:
            why = (
                "`switch`, the command that makes Keystone this arm, is missing; "
                "arms measured one by one, each in a plan of its own, can be compared "
                "by `keylag experiment compare`"
            )
            yield ("arms", name), why
    try:
        load_target.split_url(there.url)
    except load_target.TargetError as error:
        yield ("elsewhere", "url"), str(error)


def _mistake(found: ErrorDetails) -> Mistake:
    place = tuple(str(key) for key in found["loc"])
    hint = ""
    if found["type"] == "extra_forbidden":
        hint = _hint(place)
    elif found["type"] in NUMBERS and isinstance(found["input"], str):
        hint = ", without quotes or a unit"
    return place, f"{found['msg']}{hint}"


def _hint(place: Place) -> str:
    """Name the key of the same table that a wrong one is nearest to."""
    *table, wrong = place
    model = TABLES[table[0]] if table else Plan
    return f".{did_you_mean(wrong, model.model_fields)}"

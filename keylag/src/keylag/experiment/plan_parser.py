"""Read a plan from a TOML file and check it.

    plan = read_plan(Path("experiments/cache-backends.toml"))

An invalid plan is refused before anything starts; the error has the line and reason of
every mistake.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from keylag import load_plans
from keylag.errors import WrongUsageError
from keylag.experiment.plan import (
    MIN_ROUNDS,
    Decision,
    Design,
    Load,
    Plan,
    RemoteKeystone,
    jmeter_properties,
)
from keylag.experiment.remote_mistakes import remote_mistakes
from keylag.experiment.settings import OWN_SETTINGS, Arm, Properties
from keylag.experiment.toml_positions import KeyPath, Mistake, line_of
from keylag.phases import CATEGORIES
from keylag.services.keystone import CACHE_BACKENDS
from keylag.suggestions import did_you_mean
from keylag.tools.venvs import KEYSTONE_TOOLS

SLICE_PROPERTIES: Final = (
    "slice_ms",
    "slice_loads",
    "slice_number",
    "slice_after_seconds",
)
"""Properties of a load plan that interleave the arms."""
RESERVED_PROPERTIES: Final = (
    *("loops", "duration_seconds", "arrivals", "arrivals_seed"),
    *("host", "port", "protocol", "users_file"),
    *SLICE_PROPERTIES,
)
"""Properties of a load plan that the experiment sets."""
SETTING_FOR_OPTION: Final = {
    ("cache", "backend"): "cache",
    ("cache", "memcache_servers"): "cache",
    ("cache", "redis_server"): "cache",
    ("database", "connection"): "mariadb",
}
"""Options of keystone.conf that the stack sets, and the setting of an arm for each."""

TABLES: Final[Mapping[str, type[BaseModel]]] = {
    "load": Load,
    "design": Design,
    "decision": Decision,
    "remote": RemoteKeystone,
    "arms": Arm,
}
"""The model of each table of a plan."""

RENAMED_KEYS: Final = {"blocks": "rounds", "elsewhere": "remote"}
"""Former keys, which are too different from the present ones for a guess."""

NUMBER_ERRORS: Final = ("float_type", "int_type")
"""Error types of pydantic for a value that is not a number."""


class PlanError(WrongUsageError):
    """The plan is invalid; the text has file, line and reason of each mistake."""


def read_plan(path: Path) -> Plan:
    """Read and check a plan; raises PlanError with all mistakes."""
    text = _read_text(path)
    try:
        plan = Plan.model_validate(_parse(path, text))
        mistakes = list(find_contradictions(plan))
    except ValidationError as error:
        mistakes = [_mistake_of(details) for details in error.errors()]
    raise_plan_error(path, text, mistakes)
    return plan


def read_question(path: Path) -> str:
    """Return the question of a plan that need not run here.

    Raises PlanError if the file has none.
    """
    question = _parse(path, _read_text(path)).get("question")
    if not isinstance(question, str):
        message = f"{path}: no `question`"
        raise PlanError(message)
    return question


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: {error}"
        raise PlanError(message) from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"{path}: {error}"
        raise PlanError(message) from error


def limit_minutes(plan: Plan, minutes: float | None) -> Plan:
    """Return a plan with another time limit; raises PlanError if that is too short."""
    shorter = plan.with_minutes(minutes)
    for _, reason in _design_mistakes(shorter):
        message = f"--minutes {minutes:g}: {reason}"
        raise PlanError(message)
    return shorter


def raise_plan_error(path: Path, text: str, mistakes: list[Mistake]) -> None:
    """Raise PlanError with the line of each mistake; return if there is none."""
    if mistakes:
        lines = [
            f"{path}:{line_of(text, key)}: {'.'.join(key) or 'plan'}: {reason}"
            for key, reason in mistakes
        ]
        raise PlanError("\n".join(lines))


def find_contradictions(plan: Plan) -> Iterator[Mistake]:
    """Yield the mistakes of a plan whose values are valid one by one."""
    yield from _load_mistakes(plan)
    yield from _design_mistakes(plan)
    if plan.base not in plan.arms:
        yield ("base",), f"no such arm; the arms are {', '.join(plan.arms)}"
        return
    if plan.remote:
        yield from remote_mistakes(plan.arms, plan.remote)
    else:
        yield from _stack_mistakes(plan)


def _design_mistakes(plan: Plan) -> Iterator[Mistake]:
    design = plan.design
    if (least := MIN_ROUNDS * plan.round_load_seconds) > design.minutes * 60:
        reason = f"too short: a verdict needs {MIN_ROUNDS} rounds, {least:.0f} s"
        yield ("design", "minutes"), reason
    if round(1000 * design.turn_seconds) % design.slice_ms:
        yield ("design", "turn_seconds"), "must be a multiple of `slice_seconds`"


def _load_mistakes(plan: Plan) -> Iterator[Mistake]:
    try:
        load = load_plans.find_plan(plan.load.plan)
    except load_plans.PlanError as error:
        yield ("load", "plan"), str(error)
        return
    common = plan.load.properties
    yield from _property_mistakes(("load", "properties"), common, load)
    with_common = {**load.defaults, **jmeter_properties(common)}
    for name, arm in plan.arms.items():
        key = ("arms", name, "properties")
        arm_load = replace(load, defaults=with_common)
        yield from _property_mistakes(key, arm.properties, arm_load)
    if "target_port" in load.defaults and not plan.remote:
        yield (
            ("load", "plan"),
            "this load calls a service, but an arm has only Keystone",
        )
    sampler = f'testname="{plan.decision.method} '
    if (control := plan.decision.control) and control not in CATEGORIES:
        yield ("decision", "control"), f"choose one of {', '.join(CATEGORIES)}"
    elif control == plan.decision.measure:
        reason = f"no arm changes it, so the plan cannot decide by it: {control}"
        yield ("decision", "control"), reason
    if sampler not in load.path.read_text(encoding="utf-8"):
        reason = f"{load.name} sends no {plan.decision.method} requests"
        yield ("decision", "method"), reason


def _property_mistakes(
    table: KeyPath, properties: Properties, load: load_plans.LoadPlan
) -> Iterator[Mistake]:
    reserved = (*RESERVED_PROPERTIES, *load_plans.SECRET_PROPERTIES)
    given = {name: value for name, value in properties.items() if name not in reserved}
    for name in properties.keys() - given.keys():
        yield (*table, name), "reserved: the experiment sets this property"
    for name, reason in load.find_mistakes(jmeter_properties(given)):
        yield (*table, name), reason


def _stack_mistakes(plan: Plan) -> Iterator[Mistake]:
    if not plan.other_arms:
        yield ("arms",), "an experiment needs two arms or more"
    if plan.arms[plan.base].optional:
        yield ("arms", plan.base, "optional"), "every other arm is compared with it"
    for name, arm in plan.arms.items():
        table = ("arms", name)
        resolved = plan.resolved_arm(name)
        if arm.cache not in CACHE_BACKENDS:
            yield (*table, "cache"), f"choose one of {', '.join(CACHE_BACKENDS)}"
        if arm.release not in KEYSTONE_TOOLS:
            yield (*table, "release"), f"choose one of {', '.join(KEYSTONE_TOOLS)}"
        for setting in sorted(arm.model_fields_set & OWN_SETTINGS):
            yield (*table, setting), "only for a remote Keystone, table [remote]"
        if resolved.query_cache and not resolved.proxysql:
            yield (*table, "query_cache"), "needs `proxysql = true`"
        if resolved.hung_cache and resolved.cache == "null":
            yield (*table, "hung_cache"), "needs a cache server; `cache` is null"
        yield from _option_mistakes(table, arm)


def _option_mistakes(table: KeyPath, arm: Arm) -> Iterator[Mistake]:
    for section, options in arm.keystone.items():
        for option in options:
            if setting := SETTING_FOR_OPTION.get((section, option)):
                key = (*table, "keystone", section, option)
                yield key, f"the stack sets this option; use the setting `{setting}`"


def _mistake_of(details: ErrorDetails) -> Mistake:
    key = tuple(str(part) for part in details["loc"])
    hint = ""
    if details["type"] == "extra_forbidden":
        hint = _did_you_mean(key)
    elif details["type"] in NUMBER_ERRORS and isinstance(details["input"], str):
        hint = ", without quotes or a unit"
    return key, f"{details['msg']}{hint}"


def _did_you_mean(key: KeyPath) -> str:
    *table, unknown = key
    model = TABLES[table[0]] if table else Plan
    unknown = RENAMED_KEYS.get(unknown, unknown)
    return f".{did_you_mean(unknown, model.model_fields)}"

"""The plan of the experiment that verifies a finding: the stack as it is, and fixed.

Both arms are the running stack, which shell commands switch.  So the prediction and
the measurement are of the same stack, with whatever fault is planted in it.
"""

import json
import math
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.diagnosis.facts import Facts, Kind
from keylag.diagnosis.ranking import Finding
from keylag.diagnosis.rule import Rule
from keylag.diagnosis.service_requests import SERVICE
from keylag.errors import WrongUsageError
from keylag.faults.journal import Journal, PlantedFault
from keylag.faults.registry import FAULTS
from keylag.sample_cloud import users_file
from keylag.services.base import StackOptions
from keylag.stack_info import StackInfo

AS_IS: Final = "as-is"
FIXED: Final = "fixed"
MIXED_LOAD: Final = "token-mixed"
SERVICE_LOAD: Final = "service-call"
METHODS: Final[Mapping[str, Mapping[Kind, str]]] = {
    MIXED_LOAD: {
        ("POST", "password"): "POST",
        ("GET", ""): "GET",
        ("DELETE", ""): "DELETE",
    },
    SERVICE_LOAD: {("GET", SERVICE): "GET"},
}
"""The kinds of calls that each load plan sends, and their methods."""

PLAN: Final = """\
# Written by `keylag diagnose --verify {id}`. To run it again:
#   source {openrc}
#   keylag experiment run plan.toml
question = "What does a call save without {id} {name}?"
base = "{as_is}"

[remote]
url = {url}
users = {users}

[load]
plan = "{load}"
properties = {{ {properties} }}

[design]
warm_up_seconds = 4
turn_seconds = 16
rounds = 6
minutes = 20
# The size of the saving is the question, and not only its sign.
ends_at_verdict = false

[decision]
method = "{method}"
measure = "mean"

[arms.{as_is}]
switch = {switch_as_is}

[arms.{fixed}]
switch = {switch_fixed}
"""


class NotVerifiableError(WrongUsageError):
    """Keylag cannot verify a finding in this stack; the text says why."""


@dataclass(frozen=True)
class Switches:
    """Shell commands that make a stack each of the two arms."""

    as_is: str
    fixed: str


def write_plan(finding: Finding, facts: Facts, stack: StackInfo) -> str:
    """Return the plan of a finding as TOML; raises NotVerifiableError."""
    rule = finding.rule
    switches = find_switches(rule, stack)
    load, kind = _most_affected(finding)
    properties = {"threads": count_clients(facts, load)}
    if load == SERVICE_LOAD:
        properties["target_port"] = stack.port("service")
    else:
        # A prediction is of calls that are served.
        properties["revoked_percent"] = 0
    return PLAN.format(
        id=rule.id,
        name=rule.name,
        openrc=shlex.quote(str(stack.folder / "openrc")),
        url=_quote(f"{stack.url('keystone')}/v3"),
        users=_quote(str(users_file(stack))),
        load=load,
        properties=", ".join(f"{name} = {value}" for name, value in properties.items()),
        method=METHODS[load][kind],
        as_is=AS_IS,
        fixed=FIXED,
        switch_as_is=_quote(switches.as_is),
        switch_fixed=_quote(switches.fixed),
    )


def find_switches(rule: Rule, stack: StackInfo) -> Switches:
    """Return the commands for a cause; raises NotVerifiableError.

    A planted fault is taken back and planted again.  Without one, the stack gets the
    rule's options.
    """
    planted = Journal(stack.folder).planted
    for one in planted:
        if FAULTS[one.key].id == rule.id:
            return _fault_switches(one, stack.folder)
    if rule.fixed_options is None:
        message = (
            f"`keylag up` has no option that fixes {rule.id} {rule.name}, and no such "
            "fault is planted. Measure with `keylag load`, make the change, and "
            "measure again."
        )
        raise NotVerifiableError(message)
    if planted:
        keys = ", ".join(one.key for one in planted)
        message = (
            f"To fix {rule.id}, `keylag up` would take back {keys}, too. Run "
            "`keylag fault stop` first."
        )
        raise NotVerifiableError(message)
    return Switches(
        _up(stack.options, stack.folder),
        _up(rule.fixed_options(stack.options), stack.folder),
    )


def count_clients(facts: Facts, load: str) -> int:
    """Return how many clients keep Keystone as busy as it was, by Little's law."""
    if load == SERVICE_LOAD:
        return max(1, round(facts.number("service_seconds")))
    busy = math.fsum(one.per_second * one.seconds for one in facts.served)
    waiting = facts.number("queue") if facts.has("queue") else 0.0
    return max(1, round(busy + waiting))


def _most_affected(finding: Finding) -> tuple[str, Kind]:
    """Return the load that shows a cause, and the kind of calls that it costs most."""
    savings = finding.suspicion.savings
    sent = [
        (load, kind)
        for load, methods in METHODS.items()
        for kind in methods
        if kind in savings and savings[kind].high > 0
    ]
    if not sent:
        message = (
            f"{finding.rule.id} {finding.rule.name} predicts no saving of the calls "
            f"that {' and '.join(METHODS)} send, so there is nothing to compare."
        )
        raise NotVerifiableError(message)
    return max(sent, key=lambda one: finding.shares[one[1]])


def _fault_switches(planted: PlantedFault, folder: Path) -> Switches:
    stop = _keylag("fault", "stop", planted.key, folder=folder)
    strength = f"--strength={planted.strength!r}"
    words = ("fault", "start", planted.key, strength, "--no-check")
    # After an interrupted switch, the fault may be planted in part.
    return Switches(f"{stop} && {_keylag(*words, folder=folder)}", stop)


def _up(options: StackOptions, folder: Path) -> str:
    names = ("cache", "processes", "threads")
    words = (f"--{name}={getattr(options, name)}" for name in names)
    return _keylag("up", *words, folder=folder)


def _keylag(*words: str, folder: Path) -> str:
    program = Path(sys.executable).with_name("keylag")
    return shlex.join([str(program), *words, f"--state={folder}"])


def _quote(text: str) -> str:
    """Return a string of TOML."""
    return json.dumps(text, ensure_ascii=False)

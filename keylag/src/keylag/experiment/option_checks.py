"""Check that the programs and the options of keystone.conf of a plan exist.

Keystone itself ignores unknown options silently.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from keylag.experiment.plan import Plan, RemoteKeystone
from keylag.experiment.plan_parser import raise_plan_error
from keylag.experiment.remote import remote_targets
from keylag.experiment.remote_access import check_access, same_servers
from keylag.experiment.settings import Arm
from keylag.experiment.stack_setup import tools_for
from keylag.experiment.toml_positions import KeyPath, Mistake
from keylag.jmeter_process import find_java_and_jar
from keylag.load_plans import find_plan
from keylag.load_runner import jmeter_home
from keylag.suggestions import did_you_mean
from keylag.tools import ToolError

OPTION_NAMESPACES: Final = (
    "keystone",
    "oslo.cache",
    "oslo.db",
    "oslo.log",
    "oslo.policy",
)
"""Namespaces of oslo-config-generator: Keystone and its libraries."""


def check_plan(plan: Plan, path: Path) -> None:
    """Check the programs of a plan, and the options of its arms, without starting it.

    Raises ToolError for a missing program, PlanError for an unknown option, and
    JMeterError without Java or JMeter.  For remote Keystones, raises what
    `remote_targets` does, PlanError for two arms with one server, and StackError if the
    Keystone of an arm does not answer or refuses the users.
    """
    find_java_and_jar(jmeter_home())
    if plan.remote:
        _check_remote(plan, plan.remote, path)
    else:
        _check_stacks(plan, path)


def _check_remote(plan: Plan, remote: RemoteKeystone, path: Path) -> None:
    targets = remote_targets(plan, remote)
    if plan.is_switched:  # Keystone may need the command of the base to answer
        return
    urls = {name: plan.keystone_url(name) for name in targets}
    mistakes = list(same_servers(urls))
    raise_plan_error(path, path.read_text(encoding="utf-8"), mistakes)
    load = find_plan(plan.load.plan)
    for name, target in targets.items():
        check_access(urls[name], target, load)


def _check_stacks(plan: Plan, path: Path) -> None:
    unknown: list[Mistake] = []
    for name in plan.arm_names:
        keystone = tools_for(plan.resolved_arm(name)).keystone
        sections = _keystone_options(keystone / "bin" / "oslo-config-generator")
        unknown += _unknown_options(
            ("arms", name, "keystone"), plan.arms[name], sections
        )
    raise_plan_error(path, path.read_text(encoding="utf-8"), unknown)


def missing_arms(plan: Plan) -> dict[str, str]:
    """Return the optional arms whose programs are missing, each with the reason."""
    found = {}
    for name in plan.other_arms:
        if plan.arms[name].optional:
            try:
                tools_for(plan.resolved_arm(name))
            except ToolError as error:
                found[name] = str(error)
    return found


@cache
def _keystone_options(generator: Path) -> Mapping[str, Any]:
    arguments = [word for name in OPTION_NAMESPACES for word in ("--namespace", name)]
    generated = subprocess.run(
        [generator, *arguments, "--format", "json"], capture_output=True, check=False
    )
    if generated.returncode != 0:
        message = f"{generator} failed: {generated.stderr.decode(errors='replace')}"
        raise ToolError(message)
    options: Mapping[str, Any] = json.loads(generated.stdout)["options"]
    return options


def _unknown_options(
    path: KeyPath, arm: Arm, sections: Mapping[str, Any]
) -> Iterator[Mistake]:
    for section, options in arm.keystone.items():
        dests = {one["dest"] for one in sections.get(section, {}).get("opts", ())}
        for option in options:
            if option not in dests:
                reason = f"Keystone has no such option in [{section}]."
                yield (*path, section, option), f"{reason}{did_you_mean(option, dests)}"

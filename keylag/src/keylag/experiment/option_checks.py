"""What a plan of ours asks for and is not there: a program, an option of Keystone.

Keystone itself would pass over an option that it does not know without a word.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from keylag.closest import did_you_mean
from keylag.experiment.plan import Plan
from keylag.experiment.plan_parser import Mistake, raise_plan_error
from keylag.experiment.remote import load_target
from keylag.experiment.settings import Arm
from keylag.experiment.stack_setup import tools_for
from keylag.experiment.toml_positions import KeyPath
from keylag.jmeter import programs
from keylag.sending import home
from keylag.tools import ToolError

OPTION_NAMESPACES: Final = (
    "keystone",
    "oslo.cache",
    "oslo.db",
    "oslo.log",
    "oslo.policy",
)
"""Whose options the generator lists: Keystone's own, and its libraries'."""


def check_plan(plan: Plan, path: Path) -> None:
    """Raise ToolError for a program, PlanError for an option that an arm lacks.

    JMeterError if there is no Java, or no JMeter.
    Of a Keystone elsewhere: TargetError if it is not known how to ask it.
    """
    programs(home())
    if plan.elsewhere:
        load_target(plan.elsewhere)
        return
    unknown: list[Mistake] = []
    for name in plan.arm_names:
        keystone = tools_for(plan.resolved_arm(name)).keystone
        sections = _keystone_options(keystone / "bin" / "oslo-config-generator")
        unknown += _unknown_options(
            ("arms", name, "keystone"), plan.arms[name], sections
        )
    raise_plan_error(path, path.read_text(encoding="utf-8"), unknown)


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
    place: KeyPath, arm: Arm, sections: Mapping[str, Any]
) -> Iterator[Mistake]:
    for section, options in arm.keystone.items():
        dests = {one["dest"] for one in sections.get(section, {}).get("opts", ())}
        for option in options:
            if option not in dests:
                why = f"Keystone has no such option in [{section}]."
                yield (*place, section, option), f"{why}{did_you_mean(option, dests)}"

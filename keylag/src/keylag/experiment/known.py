"""What a plan of ours asks for and is not there: a program, an option of Keystone.

Keystone itself would pass over an option that it does not know without a word.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from keylag.experiment.arms import tools_of
from keylag.experiment.elsewhere import where
from keylag.experiment.lines import Place
from keylag.experiment.plan import Plan
from keylag.experiment.reading import Mistake, refuse
from keylag.experiment.settings import Arm
from keylag.jmeter import find_java_and_jar
from keylag.load_runner import jmeter_home
from keylag.suggestions import did_you_mean
from keylag.tools import ToolError

NAMESPACES: Final = ("keystone", "oslo.cache", "oslo.db", "oslo.log", "oslo.policy")
"""Whose options the generator lists: Keystone's own, and its libraries'."""


def check(plan: Plan, path: Path) -> None:
    """Raise ToolError for a program, PlanError for an option that an arm lacks.

    JMeterError if there is no Java, or no JMeter.
    Of a Keystone elsewhere: TargetError if it is not known how to ask it.
    """
    find_java_and_jar(jmeter_home())
    if plan.elsewhere:
        where(plan.elsewhere)
        return
    unknown: list[Mistake] = []
    for name in plan.order:
        keystone = tools_of(plan.whole_arm(name)).keystone
        sections = _sections(keystone / "bin" / "oslo-config-generator")
        unknown += _unknown(("arms", name, "keystone"), plan.arms[name], sections)
    refuse(path, path.read_text(encoding="utf-8"), unknown)


@cache
def _sections(generator: Path) -> Mapping[str, Any]:
    words = [word for name in NAMESPACES for word in ("--namespace", name)]
    made = subprocess.run(
        [generator, *words, "--format", "json"], capture_output=True, check=False
    )
    if made.returncode != 0:
        message = f"{generator} failed: {made.stderr.decode(errors='replace')}"
        raise ToolError(message)
    options: Mapping[str, Any] = json.loads(made.stdout)["options"]
    return options


def _unknown(place: Place, arm: Arm, sections: Mapping[str, Any]) -> Iterator[Mistake]:
    for section, options in arm.keystone.items():
        known = {one["dest"] for one in sections.get(section, {}).get("opts", ())}
        for option in options:
            if option not in known:
                why = f"Keystone has no such option in [{section}]."
                yield (*place, section, option), f"{why}{did_you_mean(option, known)}"

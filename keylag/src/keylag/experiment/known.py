"""Which options Keystone knows; it would pass over any other without a word."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from keylag.experiment.lines import Place
from keylag.experiment.plan import Plan, refuse
from keylag.tools import ToolError

NAMESPACES: Final = ("keystone", "oslo.cache", "oslo.db", "oslo.log", "oslo.policy")
"""Whose options the generator lists: Keystone's own, and its libraries'."""


def check(plan: Plan, path: Path, keystone: Path) -> None:
    """Raise PlanError for an option that the Keystone of that folder lacks."""
    sections = _sections(keystone / "bin" / "oslo-config-generator")
    refuse(path, path.read_text(encoding="utf-8"), list(_unknown(plan, sections)))


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


def _unknown(plan: Plan, sections: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    for arm, settings in plan.arms.items():
        for section, options in settings.keystone.items():
            known = {one["dest"] for one in sections.get(section, {}).get("opts", ())}
            for option in options:
                if option not in known:
                    place = ("arms", arm, "keystone", section, option)
                    yield place, f"Keystone has no such option in [{section}]"

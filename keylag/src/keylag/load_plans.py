"""JMeter load plans, found by name or path, and the properties that they take.

A plan's properties are the `${__P(name,default)}` expressions in its .jmx file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag import plan_properties, run_environment
from keylag.errors import WrongUsageError
from keylag.paths import DATA
from keylag.plan_properties import NO_LIMIT, Mistake
from keylag.suggestions import did_you_mean

PLANS_FOLDER: Final = DATA / "jmeter-plans"

SECRET_PROPERTIES: Final = ("service_password",)
"""Properties that belong in a private file, never on a command line."""

_PROPERTY: Final = re.compile(r"\$\{__P\((\w+),([^)]*)\)\}")


class PlanError(WrongUsageError):
    """A plan or property does not exist, or a value is invalid."""


@dataclass(frozen=True)
class LoadPlan:
    """A load plan; `defaults` has every property that it takes."""

    name: str
    path: Path
    defaults: Mapping[str, str]

    def find_mistakes(self, values: Mapping[str, str]) -> list[Mistake]:
        """Return unknown properties, or else invalid values, each with the reason."""
        unknown = [
            (name, f"{self.name} takes no such property.{self._hint(name)}")
            for name in values
            if name not in self.defaults
        ]
        return unknown or plan_properties.find_mistakes(values, self.defaults)

    def _hint(self, wrong: str) -> str:
        known = ", ".join(sorted(self.defaults))
        return f"{did_you_mean(wrong, self.defaults)} Its properties: {known}"

    def validate(self, values: Mapping[str, str]) -> None:
        """Raise PlanError, with one line for each unknown property or invalid value."""
        if wrong := self.find_mistakes(values):
            raise PlanError("\n".join(f"{name}: {why}." for name, why in wrong))

    def environment_facts(
        self, values: Mapping[str, str], engines: int = 1
    ) -> dict[str, str]:
        """Return the facts of the load for `keylag.run_environment`."""
        users = {**self.defaults, **values}.get("threads", "")
        total = str(int(users) * engines) if users.isdecimal() else ""
        known = {run_environment.VIRTUAL_USERS: total} if total else {}
        return {run_environment.PLAN: self.name, **known}

    def expected_requests(
        self, values: Mapping[str, str], engines: int = 1
    ) -> int | None:
        """Return the number of requests without set-up; None for an unlimited load.

        Each engine sends the whole plan.
        """
        values = {**self.defaults, **values}
        try:
            threads, loops = int(values["threads"]), int(values["loops"])
        except (KeyError, ValueError):
            return None
        return None if loops == NO_LIMIT else engines * threads * loops


def list_plans(folder: Path = PLANS_FOLDER) -> dict[str, Path]:
    """Return the paths of all plans in a folder by name."""
    return {path.stem: path for path in sorted(folder.glob("*.jmx"))}


def find_plan(name: str, folder: Path = PLANS_FOLDER) -> LoadPlan:
    """Return the plan with this name or path; raises PlanError if there is none."""
    plans = list_plans(folder)
    path = plans.get(name.removesuffix(".jmx"), Path(name))
    if not path.is_file():
        message = (
            f"There is no load plan {name}.{did_you_mean(name, plans)} "
            f"Plans: {', '.join(plans) or 'none'}. The path of a .jmx file works too."
        )
        raise PlanError(message)
    text = path.read_text(encoding="utf-8")
    return LoadPlan(path.stem, path.resolve(), dict(_PROPERTY.findall(text)))

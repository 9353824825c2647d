"""The load plans: found by name or path, with the properties that they take.

A plan's properties are its `${__P(name,default)}`; the plan is the only place
that lists them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag import options, properties
from keylag.closest import did_you_mean
from keylag.errors import WrongUsageError
from keylag.properties import NO_LIMIT, Mistake
from keylag.state import CHECKOUT

FOLDER: Final = CHECKOUT / "jmeter-plans"

SECRET: Final = ("service_password",)
"""Properties that may stand in a private file only, never on a command line."""

_PROPERTY: Final = re.compile(r"\$\{__P\((\w+),([^)]*)\)\}")


class PlanError(WrongUsageError):
    """A plan or a property does not exist, or has a wrong value; the text says."""


@dataclass(frozen=True)
class Plan:
    """One load plan; `defaults` are its properties."""

    name: str
    path: Path
    defaults: Mapping[str, str]

    def mistakes(self, values: Mapping[str, str]) -> list[Mistake]:
        """Return the properties that the plan does not take, or not with this value."""
        unknown = [
            (name, f"{self.name} takes no property {name}.{self._hint(name)}")
            for name in values
            if name not in self.defaults
        ]
        return unknown or properties.mistakes(values, self.defaults)

    def _hint(self, wrong: str) -> str:
        known = ", ".join(sorted(self.defaults))
        return f"{did_you_mean(wrong, self.defaults)} It takes: {known}"

    def check(self, values: Mapping[str, str]) -> None:
        """Raise PlanError for properties that are wrong, a line for each."""
        if wrong := self.mistakes(values):
            raise PlanError("\n".join(f"{name}: {why}." for name, why in wrong))

    def environment(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return what a reader of the results has to know of the load."""
        users = {**self.defaults, **values}.get("threads", "")
        known = {options.VIRTUAL_USERS: users} if users.isdecimal() else {}
        return {options.PLAN: self.name, **known}

    def expected(self, values: Mapping[str, str]) -> int | None:
        """Return how many requests the load has without set-up; None if unlimited."""
        values = {**self.defaults, **values}
        try:
            threads, loops = int(values["threads"]), int(values["loops"])
        except (KeyError, ValueError):
            return None
        return None if loops == NO_LIMIT else threads * loops


def known(folder: Path = FOLDER) -> dict[str, Path]:
    """Return the plans of a folder by name."""
    return {path.stem: path for path in sorted(folder.glob("*.jmx"))}


def find(name: str, folder: Path = FOLDER) -> Plan:
    """Return a plan by its name or by a path; raises PlanError if there is none."""
    plans = known(folder)
    path = plans.get(name.removesuffix(".jmx"), Path(name))
    if not path.is_file():
        message = (
            f"There is no load plan {name}.{did_you_mean(name, plans)} "
            f"There are: {', '.join(plans) or 'none'}; or give the path of a .jmx file."
        )
        raise PlanError(message)
    text = path.read_text(encoding="utf-8")
    return Plan(path.stem, path.resolve(), dict(_PROPERTY.findall(text)))

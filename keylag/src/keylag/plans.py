"""The load plans: found by name or path, with the properties that they take.

A plan's properties are its `${__P(name,default)}`; the plan is the only place
that lists them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.errors import KeylagError
from keylag.state import CHECKOUT

FOLDER: Final = CHECKOUT / "jmeter-plans"

SECRET: Final = ("service_password",)
"""Properties that may stand in a private file only, never on a command line."""

_PROPERTY: Final = re.compile(r"\$\{__P\((\w+),([^)]*)\)\}")
_NO_LIMIT: Final = -1


class PlanError(KeylagError):
    """A plan or a property does not exist; the text lists those that do."""


@dataclass(frozen=True)
class Plan:
    """One load plan; `defaults` are its properties."""

    name: str
    path: Path
    defaults: Mapping[str, str]

    def check(self, names: Iterable[str]) -> None:
        """Raise PlanError for a property that the plan does not take."""
        wrong = sorted(set(names) - set(self.defaults))
        if wrong:
            message = (
                f"The plan {self.name} takes no property {', '.join(wrong)}. "
                f"It takes: {', '.join(sorted(self.defaults))}."
            )
            raise PlanError(message)

    def expected(self, properties: Mapping[str, str]) -> int | None:
        """Return how many requests the load has without set-up; None if unlimited."""
        values = {**self.defaults, **properties}
        try:
            threads, loops = int(values["threads"]), int(values["loops"])
        except (KeyError, ValueError):
            return None
        return None if loops == _NO_LIMIT else threads * loops


def known(folder: Path = FOLDER) -> dict[str, Path]:
    """Return the plans of a folder by name."""
    return {path.stem: path for path in sorted(folder.glob("*.jmx"))}


def find(name: str, folder: Path = FOLDER) -> Plan:
    """Return a plan by its name or by a path; raises PlanError if there is none."""
    plans = known(folder)
    path = plans.get(name.removesuffix(".jmx"), Path(name))
    if not path.is_file():
        message = (
            f"There is no load plan {name}. "
            f"There are: {', '.join(plans) or 'none'}; or give the path of a .jmx file."
        )
        raise PlanError(message)
    text = path.read_text(encoding="utf-8")
    return Plan(path.stem, path.resolve(), dict(_PROPERTY.findall(text)))

"""All rules: each module of `keylag.diagnosis.rules` has one."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from keylag.diagnosis import rules
from keylag.diagnosis.rule import Rule
from keylag.errors import WrongUsageError
from keylag.suggestions import did_you_mean


def _order(rule: Rule) -> tuple[str, int]:
    """Return what sorts C2 before C10."""
    return rule.id[0], int(rule.id[1:])


_ALL: Final = [
    import_module(f"{rules.__name__}.{module.name}").RULE
    for module in iter_modules(rules.__path__)
]
RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in sorted(_ALL, key=_order)}
"""All rules by id."""


def find_rule(name: str) -> Rule:
    """Return a rule by its id or name; raises WrongUsageError if there is none."""
    known = {word.lower(): one for one in RULES.values() for word in (one.id, one.name)}
    if name.lower() not in known:
        message = (
            f"There is no cause {name}.{did_you_mean(name, known)} The ids are"
            f" {', '.join(RULES)}."
        )
        raise WrongUsageError(message)
    return known[name.lower()]

"""All rules: each module of `keylag.diagnosis.rules` has one."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from keylag.diagnosis import rules
from keylag.diagnosis.rule import Rule

RULES: Final[Mapping[str, Rule]] = {
    rule.id: rule
    for module in iter_modules(rules.__path__)
    for rule in [import_module(f"{rules.__name__}.{module.name}").RULE]
}
"""All rules by id."""

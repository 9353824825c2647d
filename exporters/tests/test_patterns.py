"""The regular expressions mean the same on every Python that Keylag supports."""

import importlib
import pkgutil
import re
from re import _constants as opcodes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

import pytest

import keylag_exporters

SINGLE = {opcodes.LITERAL, opcodes.NOT_LITERAL, opcodes.IN, opcodes.ANY}


def has_possessive_group(tree):
    """Return whether a possessive quantifier repeats more than one character."""
    for operation, argument in tree:
        if operation is opcodes.POSSESSIVE_REPEAT:
            repeated = argument[2]
            if len(repeated) != 1 or repeated[0][0] not in SINGLE:
                return True
        for part in argument if isinstance(argument, tuple | list) else [argument]:
            for branch in part if isinstance(part, list) else [part]:
                if isinstance(branch, parser.SubPattern) and has_possessive_group(
                    branch
                ):
                    return True
    return False


def patterns():
    """Return the regular expressions of all modules by name, those in tables too."""
    found = {}
    for module in pkgutil.walk_packages(keylag_exporters.__path__, "keylag_exporters."):
        if module.name.endswith("__main__"):
            continue
        waiting = [(module.name, vars(importlib.import_module(module.name)))]
        while waiting:
            name, value = waiting.pop()
            if isinstance(value, re.Pattern):
                found[name] = value
            elif isinstance(value, dict) and not name.endswith("__"):
                waiting += [(f"{name}.{key}", item) for key, item in value.items()]
            elif isinstance(value, tuple | list):
                waiting += [(f"{name}[{n}]", item) for n, item in enumerate(value)]
    return found


@pytest.mark.parametrize(
    ("pattern", "possessive"),
    [(r"(?:ab)++", True), (r"x(?:a|(?:b(?:cd)?+))", True), (r"a++[bc]*+", False)],
)
def test_a_possessive_group_is_found(pattern, possessive):
    assert has_possessive_group(parser.parse(pattern)) is possessive


def test_no_group_is_possessive():
    # Debian 12's Python 3.11.2 matches too much with one: python/cpython#106052.
    found = patterns()
    assert "keylag_exporters.slow_log.events._EVENT" in found
    assert [
        name
        for name, pattern in found.items()
        if has_possessive_group(parser.parse(pattern.pattern, pattern.flags))
    ] == []

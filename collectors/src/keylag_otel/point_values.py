"""What OSProfiler must not tell its drivers.

It writes down the values bound to each statement, among them the hashes of
passwords, and the words of the database's errors, which hold values too.
"""

from __future__ import annotations

import re
from functools import wraps
from typing import Any

from keylag_otel.clock import known_method
from keylag_otel.wrappers import Call, fault

#: What is told of a group of a point's details; of others, everything is.
_TOLD = {
    "db": frozenset({"statement"}),
    "request": frozenset({"path", "method", "scheme"}),
    "function": frozenset({"name"}),
}
_NEVER = "message"
#: A part of a path that is one of Keystone's own words, and no id or name.
_WORD = re.compile(r"[A-Za-z_-]*\d?[A-Za-z_-]*")
_LONGEST_WORD = 31


def without_values(notify: Call) -> Call:
    """Pass each point on without the values that it carries."""

    @wraps(notify)
    def watched(info: Any) -> Any:
        return notify(_cleaned(info))

    return watched


def _cleaned(point: dict[str, Any]) -> dict[str, Any]:
    """Return a point without values; without details if they are not understood."""
    try:
        return {**point, "info": _told(point.get("info") or {})}
    except Exception:
        fault(without_values)
        return {**point, "info": {"host": ""}}


def _told(info: dict[str, Any]) -> dict[str, Any]:
    told = {name: value for name, value in info.items() if name != _NEVER}
    for group, names in _TOLD.items():
        if group in told:
            told[group] = {n: v for n, v in told[group].items() if n in names}
    request = told.get("request")
    if request:
        request["method"] = known_method(request["method"])
        request["path"] = _template(request["path"])
    return told


def _template(path: str) -> str:
    return "/".join(
        part if len(part) <= _LONGEST_WORD and _WORD.fullmatch(part) else "{id}"
        for part in path.split("/")
    )

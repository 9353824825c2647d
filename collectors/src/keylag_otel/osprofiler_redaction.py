"""Redaction of OSProfiler's points before they reach a driver.

OSProfiler records the parameters of each statement, including password hashes, and
the messages of database errors, which contain values.
"""

from __future__ import annotations

import re
from functools import wraps
from typing import Any

from keylag_otel.request_timer import method_label
from keylag_otel.wrappers import Call, count_fault

#: The details that are kept, by group; other groups are kept unchanged.
_ALLOWED = {
    "db": frozenset({"statement"}),
    "request": frozenset({"path", "method", "scheme"}),
    "function": frozenset({"name"}),
}
_ERROR_TEXT = "message"
#: A segment of a path that is a word of Keystone's API, not an id or name.
_KEYWORD = re.compile(r"[A-Za-z_-]*\d?[A-Za-z_-]*")
_LONGEST_KEYWORD = 31


def redact_values(notify: Call) -> Call:
    """Wrap OSProfiler's `notify` to remove values from each point."""

    @wraps(notify)
    def wrapper(info: Any) -> Any:
        return notify(_redacted(info))

    return wrapper


def _redacted(point: dict[str, Any]) -> dict[str, Any]:
    try:
        return {**point, "info": _allowed_details(point.get("info") or {})}
    except Exception:
        count_fault(redact_values)
        return {**point, "info": {"host": ""}}


def _allowed_details(info: dict[str, Any]) -> dict[str, Any]:
    details = {name: value for name, value in info.items() if name != _ERROR_TEXT}
    for group, names in _ALLOWED.items():
        if group in details:
            details[group] = {n: v for n, v in details[group].items() if n in names}
    request = details.get("request")
    if request:
        request["method"] = method_label(request["method"])
        request["path"] = _path_template(request["path"])
    return details


def _path_template(path: str) -> str:
    return "/".join(
        part if len(part) <= _LONGEST_KEYWORD and _KEYWORD.fullmatch(part) else "{id}"
        for part in path.split("/")
    )

"""Counts that are not kept by route: how often, how many, how large.

A *tally* is one counter with one set of attribute values.  It is known by a
small integer, looked up once where its values are known, so that counting in
a request is one addition.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

from keylag_otel import instruments
from keylag_otel.auth_token import instruments as auth_token_instruments

#: Attribute values come from closed sets.  Should one turn out not to be, what
#: is beyond this many tallies is counted as one, with all its values "other".
LIMIT = 4096
_BEYOND = "other"

_TALLIES = {**instruments.TALLIES, **auth_token_instruments.TALLIES}

_ids: dict[tuple[Any, ...], int] = {}
_keys: list[tuple[Any, ...]] = []
_lock = Lock()


def tally(name: str, *values: Any) -> int:
    """Return the number of a tally; `name` is a key of a table ``TALLIES``.

    `values` are parallel to the instrument's attributes.
    """
    key = (name, *values)
    number = _ids.get(key)
    return _new(key) if number is None else number


def _new(key: tuple[Any, ...]) -> int:
    with _lock:
        if len(_keys) >= LIMIT:
            key = (key[0], *(_BEYOND for _ in key[1:]))
        if key not in _ids:
            _keys.append(key)
            _ids[key] = len(_keys) - 1
        return _ids[key]


def attributes_of(number: int) -> tuple[str, dict[str, Any]]:
    """Return a tally's instrument and its attributes."""
    name, *values = _keys[number]
    return name, dict(zip(_TALLIES[name].attributes, values))

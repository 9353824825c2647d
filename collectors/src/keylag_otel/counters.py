"""Counters without the attributes of requests.

A *counter* is an instrument with one combination of attribute values.  Its id is a
small integer, so that incrementing it in a request is one addition.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import Any

from keylag_otel import instruments
from keylag_otel.auth_token import instruments as auth_token_instruments

_INSTRUMENTS = {**instruments.COUNTERS, **auth_token_instruments.COUNTERS}

_ids: dict[tuple[Any, ...], int] = {}
_keys: list[tuple[Any, ...]] = []
_sizes: Counter[str] = Counter()
_lock = Lock()


def counter_id(name: str, *values: Any) -> int:
    """Return the id of a counter; `name` is a key of a table ``COUNTERS``.

    `values` are parallel to the instrument's attributes.  Beyond the cardinality limit
    of the instrument, all new values share its overflow counter.
    """
    key = (name, *values)
    number = _ids.get(key)
    return _register(key) if number is None else number


def _register(key: tuple[Any, ...]) -> int:
    name = key[0]
    with _lock:
        if key not in _ids and _sizes[name] >= _INSTRUMENTS[name].limit:
            key = (name, instruments.OVERFLOW)
        if key not in _ids:
            _keys.append(key)
            _ids[key] = len(_keys) - 1
            _sizes[name] += 1
        return _ids[key]


def counter_attributes(number: int) -> tuple[str, dict[str, Any]]:
    """Return the name of a counter's instrument, and its attributes."""
    name, *values = _keys[number]
    if values == [instruments.OVERFLOW]:
        return name, {instruments.OVERFLOW: True}
    return name, dict(zip(_INSTRUMENTS[name].attributes, values))

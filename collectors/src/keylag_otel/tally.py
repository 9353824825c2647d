"""Counts that are not kept by route: how often, how many, how large.

A *tally* is one counter with one set of attribute values.  It is known by a
small integer, looked up once where its values are known, so that counting in
a request is one addition.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import Any

from keylag_otel import instruments
from keylag_otel.auth_token import instruments as auth_token_instruments

_TALLIES = {**instruments.TALLIES, **auth_token_instruments.TALLIES}

_ids: dict[tuple[Any, ...], int] = {}
_keys: list[tuple[Any, ...]] = []
_sizes: Counter[str] = Counter()
_lock = Lock()


def tally(name: str, *values: Any) -> int:
    """Return the number of a tally; `name` is a key of a table ``TALLIES``.

    `values` are parallel to the instrument's attributes.  They come from closed sets;
    should one turn out not to, what is beyond the instrument's limit is one tally,
    and no other instrument notices.
    """
    key = (name, *values)
    number = _ids.get(key)
    return _new(key) if number is None else number


def _new(key: tuple[Any, ...]) -> int:
    name = key[0]
    with _lock:
        if key not in _ids and _sizes[name] >= _TALLIES[name].limit:
            key = (name, instruments.OVERFLOW)
        if key not in _ids:
            _keys.append(key)
            _ids[key] = len(_keys) - 1
            _sizes[name] += 1
        return _ids[key]


def attributes_of(number: int) -> tuple[str, dict[str, Any]]:
    """Return a tally's instrument and its attributes."""
    name, *values = _keys[number]
    if values == [instruments.OVERFLOW]:
        return name, {instruments.OVERFLOW: True}
    return name, dict(zip(_TALLIES[name].attributes, values))

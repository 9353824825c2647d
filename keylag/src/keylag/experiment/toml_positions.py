"""Where something stands in a TOML file.

`tomllib` keeps no lines.  Each line that is a header or begins a value is read by
itself to know its path; what is asked for stands at the longest path that leads to
it, which for something that is missing is the table it should be in.
"""

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, Final

FIRST_LINE: Final = 1

KeyPath = tuple[str, ...]
"""The keys that lead to a value."""


def line_of(text: str, place: Sequence[str]) -> int:
    """Return the line, counted from 1, where a value or its table begins."""
    wanted = tuple(place)
    found, line = 0, FIRST_LINE
    for number, path in _key_paths(text):
        if len(path) > found and wanted[: len(path)] == path:
            found, line = len(path), number
    return line


def _key_paths(text: str) -> Iterator[tuple[int, KeyPath]]:
    table: KeyPath = ()
    for number, line_text in enumerate(text.splitlines(), start=FIRST_LINE):
        if line_text.lstrip().startswith("["):
            table = _keys_of_line(line_text)
            yield number, table
        elif "=" in line_text:
            yield number, table + _keys_of_line(line_text.partition("=")[0] + "= 0")


def _keys_of_line(line: str) -> KeyPath:
    """Return the keys of a header or of `key = value`; none if it is neither."""
    try:
        inside: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    keys = []
    while isinstance(inside, dict) and inside:
        key, inside = next(iter(inside.items()))
        keys.append(key)
    return tuple(keys)

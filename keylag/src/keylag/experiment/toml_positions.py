"""Find the line of a key in a TOML file.

`tomllib` discards line numbers.  This module parses each table header and each
`key = value` line on its own to get its key path.  The position of a key is the line
with the longest path that is a prefix of the key's: for a missing key, its table.
"""

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, Final

FIRST_LINE: Final = 1

KeyPath = tuple[str, ...]
"""The keys from the root of the file to a value."""
Mistake = tuple[KeyPath, str]
"""The key, and what is wrong with its value."""


def line_of(text: str, path: Sequence[str]) -> int:
    """Return the number of the line, from 1, where a value or its table begins."""
    wanted = tuple(path)
    longest, line = 0, FIRST_LINE
    for number, found in _key_paths(text):
        if len(found) > longest and wanted[: len(found)] == found:
            longest, line = len(found), number
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
    try:
        inside: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    keys = []
    while isinstance(inside, dict) and inside:
        key, inside = next(iter(inside.items()))
        keys.append(key)
    return tuple(keys)

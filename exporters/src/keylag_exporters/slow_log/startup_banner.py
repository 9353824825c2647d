"""Removes the banner that mysqld and mariadbd log at startup."""

from __future__ import annotations

import re

# Program and version, ports, column headings. No part of a pattern backtracks, so that
# a long line takes linear time.
_LINE = re.compile(
    rb"^(?:[Tt][Cc][Pp]\s[Pp]ort:\s++[0-9]|Time\s++Id\s++Command"
    rb"|([/A-Z][^\n]*?(?:mysqld|mariadbd),\sVersion))",
    re.MULTILINE,
)
_STARTED = re.compile(rb"started\swith:|embedded\slibrary")


def strip_startup_banner(text: bytes) -> bytes:
    """Return a text without startup banners; the same object if it has none."""
    pieces: list[bytes] = []
    done = 0
    for line in _LINE.finditer(text):
        end = text.find(b"\n", line.end())
        if end >= 0 and (not line[1] or _STARTED.search(text, line.end(), end)):
            pieces.append(text[done : line.start()])
            done = end + 1
    return b"".join((*pieces, text[done:])) if done else text

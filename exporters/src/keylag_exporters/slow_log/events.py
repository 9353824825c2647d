"""Cut blocks of a slow log into events, most of them without running Python code.

A block is parsed by three calls that run in C: `split` and `join` take the quoted
literals out, one regular expression finds every event. Whatever that does not fit
is looked at event by event: slower, but with the same outcome.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SEPARATOR = b";\n#"
"""What ends an event: its semicolon, the line's end, the next event's hash."""


class Row(NamedTuple):
    """One event. Numbers are digits as logged; `flags` is the rest of the header."""

    before: bytes
    query_time: bytes
    lock_time: bytes
    rows_sent: bytes
    rows_examined: bytes
    flags: bytes
    statement: bytes


Rows = list[tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]]

# Possessive throughout, so that text which does not fit fails at once. The two
# lines that carry no flag of ours (MariaDB's Thread_id and Rows_affected) are
# passed over; any other line is kept in `before` or `flags`.
_EVENT = re.compile(
    rb"#?+(?: Time: [^\n]*+\n#)?+ User@Host: [^\n]*+\n"
    rb"(?:# Thread_id: [^\n]*+\n|(# (?!Query_time)[^\n]*+\n))?+"
    rb"# Query_time: ([0-9]{1,12}+(?:\.[0-9]{1,12}+)?+)"
    rb"  Lock_time: ([0-9]{1,12}+(?:\.[0-9]{1,12}+)?+) ++"
    rb"Rows_sent: ([0-9]{1,20}+)  Rows_examined: ([0-9]{1,20}+)"
    rb"(?:\n(?:# Rows_affected: [^\n]*+\n)?+(?!#)"
    rb"|([^\n]*+\n(?:#[^\n]*+\n)*+))"
    rb"(?:use [^;\n]*+;\n)?+SET timestamp=[0-9]++;\n"
    rb"([^;]*+(?:;(?!\n#)[^;]*+)*+);\n#"
)
_HEADER = b"\n# Query_time: "

# what mysqld writes at its start: program and version, ports, column heads
_SERVER_START = re.compile(
    rb"^(?:[Tt][Cc][Pp]\s[Pp]ort:\s+\d+"
    rb"|[/A-Z].*mysqld,\sVersion.*(?:started\swith:|embedded\slibrary)"
    rb"|[/A-Z].*mariadbd,\sVersion.*(?:started\swith:|embedded\slibrary)"
    rb"|Time\s+Id\s+Command).*\n",
    re.MULTILINE,
)
_ABOUT = re.compile(
    rb"(?:#|use |SET (?:last_insert_id|insert_id|timestamp))[^\n]*(?:\n|\Z)"
)
_ABOUT_BEGINNINGS = (b"#", b"use ", b"SET last_insert_id", b"SET insert_id", b"SET t")
_END = re.compile(rb";\n#?\Z")
_ADMINISTRATOR = re.compile(rb"^# (administrator command:[^\n]*)", re.MULTILINE)
_USE = re.compile(rb"^(use [^;\n]+)", re.MULTILINE)
_FIELD = re.compile(rb"(\w+):\s+(\S+)")
_TIME = re.compile(rb"\d{1,12}(?:\.\d{1,12})?")
_COUNT = re.compile(rb"\d{1,20}")
_ZERO = (b"0",)
_LITERAL_TROUBLE = (b"#", b"(", b"*", b"--")


def findall(block: bytes) -> Rows | None:
    """Return the events of a block, or None when one is not of the usual form.

    A block starts after a separator and ends with one. Every event found holds two
    semicolons or more and one separator, so either count shows what was passed over;
    the first is much the cheaper one.
    """
    rows: Rows = _EVENT.findall(block)
    found = len(rows)
    complete = block.count(b";") == 2 * found or block.count(SEPARATOR) == found
    return rows if complete else None


def without_literals(block: bytes) -> bytes | None:
    """Empty each quoted literal, or return None where that is unsafe.

    Unsafe is what makes quotes ambiguous (escapes, double quotes) and literals
    whose text changes a fingerprint: comment signs, parentheses, a separator.
    """
    if b"\\" in block or b'"' in block:
        return None
    pieces = block.split(b"'")
    literals = b"".join(pieces[1::2])
    if not len(pieces) % 2 or any(sign in literals for sign in _LITERAL_TROUBLE):
        return None
    return b"''".join(pieces[::2])


def one_by_one(block: bytes) -> Iterator[Row | None]:
    """Yield each event of a block; None for what cannot be understood."""
    for chunk in block.removesuffix(SEPARATOR).split(SEPARATOR):
        usual = _EVENT.fullmatch(chunk + SEPARATOR)
        row = Row(*usual.groups(b"")) if usual else None
        if row is not None and is_statement(row.statement):
            yield row
        elif chunk.strip():
            yield from unusual(chunk)


def is_statement(text: bytes) -> bool:
    """Tell whether a text is one statement, without any line about it."""
    return not (
        text.startswith(_ABOUT_BEGINNINGS)
        or _HEADER in text
        or _SERVER_START.search(text)
    )


def unusual(chunk: bytes) -> Iterator[Row | None]:
    """Yield the events of one chunk, of any server and with lines of any order."""
    for part in _SERVER_START.sub(b"", chunk).split(SEPARATOR):
        if part.strip():
            yield _read(part if part.startswith(b"#") else b"#" + part)


def text_of(row: Row) -> bytes:
    """Return an event's text again, for a second look at it."""
    head = b" Query_time: %b  Lock_time: %b  Rows_sent: %b  Rows_examined: %b\n"
    flags = b"# " + row.flags if row.flags else b""
    return head % row[1:5] + row.before + flags + row.statement


def _read(text: bytes) -> Row | None:
    """Read one event line by line; None without a statement or a query time."""
    text = _END.sub(b"", text)
    header, statement = _halves(text)
    fields = dict(_FIELD.findall(header))
    statement = statement or _of_header(header)
    time = _TIME.match(fields.get(b"Query_time", b""))
    if not statement or time is None:
        return None
    lock = _TIME.match(fields.get(b"Lock_time", b"0")) or _ZERO
    sent = _COUNT.match(fields.get(b"Rows_sent", b"0")) or _ZERO
    examined = _COUNT.match(fields.get(b"Rows_examined", b"0")) or _ZERO
    return Row(header, time[0], lock[0], sent[0], examined[0], b"", statement)


def _halves(text: bytes) -> tuple[bytes, bytes]:
    """Split an event into the lines about the statement and the statement."""
    end = 0
    while about := _ABOUT.match(text, end):
        end = about.end()
    return text[:end], text[end:]


def _of_header(header: bytes) -> bytes:
    """Return the statement of an event that is all header: a command or a USE."""
    found = _ADMINISTRATOR.search(header) or _USE.search(header)
    return found[1] if found else b""

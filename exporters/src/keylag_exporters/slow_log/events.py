"""Cut blocks of a slow log into events, most of them without running Python code.

A block is parsed by three calls that run in C: `split` and `join` take the quoted
literals out, one regular expression finds every event. Whatever that does not fit
is looked at event by event: slower, but with the same outcome.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from keylag_exporters.slow_log.server_start import without_server_start

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


Fields = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]
Rows = list[Fields]

# Possessive throughout, so that text which does not fit fails at once. The two
# lines that carry no flag of ours (MariaDB's Thread_id and Rows_affected) are
# passed over; any other line is kept in `before` or `flags`.
_EVENT = re.compile(
    rb"#?+(?: Time: [^\n]*+\n#)?+ User@Host: [^\n]*+\n"
    rb"(?:# Thread_id: [^\n]*+\n|(# (?!Query_time)[^\n]*+\n))?+"
    rb"# Query_time: ([0-9]{1,20}+(?:\.[0-9]{1,12}+)?+)"
    rb"  Lock_time: ([0-9]{1,20}+(?:\.[0-9]{1,12}+)?+) ++"
    rb"Rows_sent: ([0-9]{1,20}+)  Rows_examined: ([0-9]{1,20}+)"
    rb"(?:\n(?:# Rows_affected: [^\n]*+\n)?+(?!#)"
    rb"|([^\n]*+\n(?:#(?! User@Host| Query_time)[^\n]*+\n)*+))"
    rb"(?:use [^;\n]*+;\n)?+SET timestamp=[0-9]++;\n"
    rb"([^;]*+(?:;(?!\n#)[^;]*+)*+);\n#"
)
_HEADER = b"\n# Query_time: "

_ABOUT = re.compile(
    rb"(?:#|use |SET (?:last_insert_id|insert_id|timestamp))[^\n]*(?:\n|\Z)"
)
_ABOUT_BEGINNINGS = (b"#", b"use ", b"SET last_insert_id", b"SET insert_id", b"SET t")
_NEXT_EVENT = re.compile(rb" (?:User@Host|Time): ")
_ADMINISTRATOR = re.compile(rb"^# (administrator command:[^\n]*)", re.MULTILINE)
_ABOUT_ITSELF = re.compile(rb"^SET [^\n]*;\n((?:use |SET )[^\n]*)\Z", re.MULTILINE)
_FIELDS = re.compile(rb"^# +[A-Z][A-Za-z_]++: \S[^\n]*", re.MULTILINE)
_FIELD = re.compile(rb"\b(\w++):\s++(\S++)")
_TIME = re.compile(rb"-?[0-9]{1,20}(?![0-9])(?:\.[0-9]{1,12})?")
_COUNT = re.compile(rb"-?[0-9]{1,20}(?![0-9])")
_ZERO = (b"0",)
_NO_STATEMENT = (b"", b"0")
_NO_QUERY = b"/* No query */"
"""What pt-query-digest takes for no statement, and what it says in place of one."""
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
    """Yield each event of a block; None for what cannot be understood.

    A block is cut at each separator, and so also between an event's header and a
    statement that begins with a hash. Such a statement ends with its line.
    """
    header = b""
    events = block.removesuffix(SEPARATOR)
    text = without_server_start(events)
    text = text if text is events else text.removesuffix(b";\n")
    for whole in text.split(SEPARATOR):
        chunk = whole
        if header and not _NEXT_EVENT.match(chunk):
            statement, _, chunk = chunk.partition(b";\n")
            yield _event(header, statement.lstrip())
        elif header:
            yield _event(header, _about_itself(header) or _NO_QUERY)
        header = b""
        if usual := _usual(chunk):
            yield usual
        elif chunk.strip():
            header, statement = _halves(b"#" + chunk.removeprefix(b"#"))
            if statement or header.endswith(b"\n"):
                yield _event(header, statement)
                header = b""
    if header:
        yield _event(header, _about_itself(header))


def is_statement(text: bytes) -> bool:
    """Tell whether a text is one statement, without any line about it."""
    return not (
        text in _NO_STATEMENT
        or text.startswith(_ABOUT_BEGINNINGS)
        or _HEADER in text
        or without_server_start(text) is not text
    )


def text_of(row: Row) -> bytes:
    """Return an event's text again, for a second look at it."""
    head = b" Query_time: %b  Lock_time: %b  Rows_sent: %b  Rows_examined: %b\n"
    flags = b"# " + row.flags if row.flags else b""
    about = head % row[1:5] + row.before + flags
    return about + b"SET timestamp=0;\n" + row.statement + SEPARATOR


def _usual(chunk: bytes) -> Row | None:
    """Return the event of a chunk that is of the usual form."""
    usual = _EVENT.fullmatch(chunk + SEPARATOR)
    row = Row(*usual.groups(b"")) if usual else None
    return row if row and is_statement(row.statement) else None


def _event(header: bytes, statement: bytes) -> Row | None:
    """Read an event's header; None without a statement or a query time."""
    lines = b"\n".join(_FIELDS.findall(header))
    fields = dict(_FIELD.findall(lines))
    time = _TIME.match(fields.get(b"Query_time", b""))
    if statement in _NO_STATEMENT or time is None:
        return None
    lock = _TIME.match(fields.get(b"Lock_time", b"0")) or _ZERO
    sent = _COUNT.match(fields.get(b"Rows_sent", b"0")) or _ZERO
    examined = _COUNT.match(fields.get(b"Rows_examined", b"0")) or _ZERO
    return Row(header, time[0], lock[0], sent[0], examined[0], b"", statement)


def _halves(text: bytes) -> tuple[bytes, bytes]:
    """Split an event into the lines about the statement and the statement.

    A command may be one of those lines.
    """
    end = 0
    while about := _ABOUT.match(text, end):
        end = about.end()
    command = None if text[end:] else _ADMINISTRATOR.search(text)
    return text[:end], command[1] if command else text[end:]


def _about_itself(header: bytes) -> bytes:
    """Return the statement of a header without one: USE and SET look like its lines."""
    found = _ABOUT_ITSELF.search(header)
    return found[1] if found else b""

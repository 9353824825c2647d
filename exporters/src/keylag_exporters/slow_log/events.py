"""Parses chunks of a slow log into events, mostly in C code.

Three calls parse a chunk on the fast path: `split` and `join` remove quoted literals,
and one regular expression finds all events. Chunks that do not match take the slow
path, event by event, with the same result.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from keylag_exporters.slow_log.startup_banner import strip_startup_banner

if TYPE_CHECKING:
    from collections.abc import Iterator

SEPARATOR = b";\n#"
"""End of an event: its semicolon, a newline, the hash of the next event."""


class Row(NamedTuple):
    """One event. `before` and `flags` are the rest of its header."""

    before: bytes
    query_time: bytes
    lock_time: bytes
    rows_sent: bytes
    rows_examined: bytes
    flags: bytes
    statement: bytes


Fields = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]
Rows = list[Fields]

# Quantifiers are possessive and repeated groups atomic, so that a mismatch fails
# without backtracking (Python 3.11.2 ends possessive groups too far). Two lines without
# flags (MariaDB's Thread_id and Rows_affected) are skipped; other lines are kept in
# `before` or `flags`.
_EVENT = re.compile(
    rb"#?+(?>(?: Time: [^\n]*+\n#)?) User@Host: [^\n]*+\n"
    rb"(?>(?:# Thread_id: [^\n]*+\n|(# (?!Query_time)[^\n]*+\n))?)"
    rb"# Query_time: ([0-9]{1,20}+(?>(?:\.[0-9]{1,12}+)?))"
    rb"  Lock_time: ([0-9]{1,20}+(?>(?:\.[0-9]{1,12}+)?)) ++"
    rb"Rows_sent: ([0-9]{1,20}+)  Rows_examined: ([0-9]{1,20}+)"
    rb"(?:\n(?>(?:# Rows_affected: [^\n]*+\n)?)(?!#)"
    rb"|([^\n]*+\n(?>(?:#(?! User@Host| Query_time)[^\n]*+\n)*)))"
    rb"(?>(?:use [^;\n]*+;\n)?)SET timestamp=[0-9]++;\n"
    rb"([^;]*+(?>(?:;(?!\n#)[^;]*+)*));\n#"
)
_QUERY_TIME_LINE = b"\n# Query_time: "

_HEADER_LINE = re.compile(
    rb"(?:#|use |SET (?:last_insert_id|insert_id|timestamp))[^\n]*(?:\n|\Z)"
)
_HEADER_PREFIXES = (b"#", b"use ", b"SET last_insert_id", b"SET insert_id", b"SET t")
NEXT_EVENT = re.compile(rb" (?:User@Host|Time): ")
_ADMINISTRATOR = re.compile(rb"^# (administrator command:[^\n]*)", re.MULTILINE)
_STATEMENT_IN_HEADER = re.compile(
    rb"^SET [^\n]*;\n((?:use |SET )[^\n]*)\Z", re.MULTILINE
)
_FIELDS = re.compile(rb"^# +[A-Z][A-Za-z_]++: \S[^\n]*", re.MULTILINE)
_FIELD = re.compile(rb"\b(\w++):\s++(\S++)")
_SECONDS = re.compile(rb"-?[0-9]{1,20}(?![0-9])(?:\.[0-9]{1,12})?")
_COUNT = re.compile(rb"-?[0-9]{1,20}(?![0-9])")
_ZERO = (b"0",)
_NO_STATEMENT = (b"", b"0")
"""What counts as no statement, as for pt-query-digest."""
_NO_QUERY = b"/* No query */"
"""Statement that pt-query-digest prints for an event without one."""
_UNSAFE_IN_LITERALS = (b"#", b"(", b"*", b"--")


def parse_fast(chunk: bytes) -> Rows | None:
    """Return the events of a chunk, or None if one is not of the usual form.

    A chunk starts after a separator and ends with one. Each match contains at least two
    semicolons and one separator, so either count reveals an event that was not matched.
    Counting semicolons is much cheaper and therefore comes first.
    """
    rows: Rows = _EVENT.findall(chunk)
    found = len(rows)
    complete = chunk.count(b";") == 2 * found or chunk.count(SEPARATOR) == found
    return rows if complete else None


def strip_literals(chunk: bytes) -> bytes | None:
    """Empty each quoted literal; return None if the quotes are ambiguous.

    Escapes and double quotes make quotes ambiguous. Comment signs, parentheses and
    separators in literals change a fingerprint.
    """
    if b"\\" in chunk or b'"' in chunk:
        return None
    pieces = chunk.split(b"'")
    literals = b"".join(pieces[1::2])
    if not len(pieces) % 2 or any(sign in literals for sign in _UNSAFE_IN_LITERALS):
        return None
    return b"''".join(pieces[::2])


def parse_slow(chunk: bytes) -> Iterator[Row | None]:
    """Yield each event of a chunk, and None for each invalid one.

    A chunk is split at separators, and so also between a header and a statement that
    begins with a hash. Such a statement ends at the end of its line.
    """
    header = b""
    events = chunk.removesuffix(SEPARATOR)
    text = strip_startup_banner(events)
    text = text if text is events else text.removesuffix(b";\n")
    for whole in text.split(SEPARATOR):
        piece = whole
        if header and not NEXT_EVENT.match(piece):
            statement, _, piece = piece.partition(b";\n")
            yield _parse_header(header, statement.lstrip())
        elif header:
            yield _parse_header(header, _statement_in_header(header) or _NO_QUERY)
        header = b""
        if usual := _parse_usual_form(piece):
            yield usual
        elif piece.strip():
            header, statement = _split_header(b"#" + piece.removeprefix(b"#"))
            if statement or header.endswith(b"\n"):
                yield _parse_header(header, statement)
                header = b""
    if header:
        yield _parse_header(header, _statement_in_header(header))


def is_single_statement(text: bytes) -> bool:
    """Return whether a text is one statement, without header lines."""
    return not (
        text in _NO_STATEMENT
        or text.startswith(_HEADER_PREFIXES)
        or _QUERY_TIME_LINE in text
        or strip_startup_banner(text) is not text
    )


def to_text(row: Row) -> bytes:
    """Return the text of an event, to parse it again."""
    head = b" Query_time: %b  Lock_time: %b  Rows_sent: %b  Rows_examined: %b\n"
    flags = b"# " + row.flags if row.flags else b""
    header = head % row[1:5] + row.before + flags
    return header + b"SET timestamp=0;\n" + row.statement + SEPARATOR


def _parse_usual_form(piece: bytes) -> Row | None:
    """Return the event if it has the usual form, else None."""
    usual = _EVENT.fullmatch(piece + SEPARATOR)
    row = Row(*usual.groups(b"")) if usual else None
    return row if row and is_single_statement(row.statement) else None


def _parse_header(header: bytes, statement: bytes) -> Row | None:
    """Return the event; None without a statement or a query time."""
    lines = b"\n".join(_FIELDS.findall(header))
    fields = dict(_FIELD.findall(lines))
    time = _SECONDS.match(fields.get(b"Query_time", b""))
    if statement in _NO_STATEMENT or time is None:
        return None
    lock = _SECONDS.match(fields.get(b"Lock_time", b"0")) or _ZERO
    sent = _COUNT.match(fields.get(b"Rows_sent", b"0")) or _ZERO
    examined = _COUNT.match(fields.get(b"Rows_examined", b"0")) or _ZERO
    return Row(header, time[0], lock[0], sent[0], examined[0], b"", statement)


def _split_header(text: bytes) -> tuple[bytes, bytes]:
    """Split an event into header lines and statement.

    An administrator command may be one of the header lines.
    """
    end = 0
    while header := _HEADER_LINE.match(text, end):
        end = header.end()
    command = None if text[end:] else _ADMINISTRATOR.search(text)
    return text[:end], command[1] if command else text[end:]


def _statement_in_header(header: bytes) -> bytes:
    """Return a USE or SET statement, which looks like a header line."""
    found = _STATEMENT_IN_HEADER.search(header)
    return found[1] if found else b""

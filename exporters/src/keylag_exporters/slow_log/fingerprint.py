"""Computes fingerprints exactly as pt-query-digest 3.2.1 does.

All texts are bytes: a slow log has no encoding, and pt-query-digest lower-cases only
ASCII. The rules were derived by comparing outputs. Oddities (`ascii` after ORDER BY
loses its `asc`, `IN` has no word boundary on its right) are those of pt-query-digest,
and the ids depend on them. In contrast to pt-query-digest, the time is linear in the
length of the statement.
"""

from __future__ import annotations

import hashlib
import re

from keylag_exporters.slow_log.unions import fold_unions

MAX_FINGERPRINT = 5000
"""Maximum length of a stored fingerprint; the id is computed from all of it."""

_MYSQLDUMP = b"SELECT /*!40001 SQL_NO_CACHE */ * FROM `"
_ADMINISTRATOR = b"administrator command: "
_TOOLKIT = re.compile(rb"/\*\w+\.\w+:[0-9]/[0-9]\*/")
_CALL = re.compile(rb"\A\s*(call\s+\S+)\(", re.IGNORECASE)
_INSERT = re.compile(rb"(?:INSERT|REPLACE)(?: IGNORE)?\s+INTO", re.IGNORECASE)
_VALUES = re.compile(rb"VALUES\s*\(", re.IGNORECASE)
_NEXT_ROW = re.compile(rb"\)\s*,\s*\(")
_UNQUOTED_RUN = re.compile(rb"[^'\"\r\n]++")
_DASHES_OR_HASH = re.compile(rb"--|#")
_USE = re.compile(rb"\Ause \S+(?=\n?\Z)", re.IGNORECASE)
_SPACE = re.compile(rb"[ \n\t\r\f]+")

# (pattern, replacement), applied in this order
_LITERALS = (
    (re.compile(rb"\\[\"']"), b""),
    (re.compile(rb'"[^"]*+"'), b"?"),
    (re.compile(rb"'[^']*+'"), b"?"),
    (re.compile(rb"\b(?:false|true)\b", re.IGNORECASE), b"?"),
    (re.compile(rb"[0-9+-][0-9a-f.xb+-]*+"), b"?"),
    (re.compile(rb"[xb.+-]\?"), b"?"),
)
_NULL = re.compile(rb"\bnull\b")
_LIST = re.compile(rb"\b(in|values?)(?>(?:[\s,]*+\([\s?,]*+\))+)")
_LIMIT = re.compile(rb"\blimit \?(?:, ?\?| offset \?)?")
_ORDER = re.compile(rb"\border by ")
_ASC = re.compile(rb"(?<=\s)asc")


def class_id(fingerprint: bytes) -> str:
    """Return the id that pt-query-digest prints: 0x and the uppercase MD5."""
    digest = hashlib.md5(fingerprint, usedforsecurity=False).hexdigest()
    return "0x" + digest.upper()


def fingerprint(statement: bytes) -> bytes:
    """Return the fingerprint of one statement without its last semicolon."""
    fixed = _fixed_fingerprint(statement)
    if fixed is not None:
        return fixed
    text = strip_comments(_cut_after_first_row(statement))
    if _USE.match(text):
        return _USE.sub(b"use ?", text)
    for pattern, replacement in _LITERALS:
        text = pattern.sub(replacement, text)
    text = text.lstrip(b" \t\n\r\f\v").removesuffix(b"\n")
    return _collapse(_SPACE.sub(b" ", text).lower())


def _cut_after_first_row(statement: bytes) -> bytes:
    """Cut a multi-row INSERT after its first row."""
    insert = _INSERT.match(statement)
    values = insert and _VALUES.search(statement, insert.end() + 1)
    row_end = values and _NEXT_ROW.search(statement, values.end())
    return statement[: row_end.start() + 1] if row_end else statement


def strip_comments(text: bytes) -> bytes:
    """Remove `/* */` (but not `/*! */`), `--` and `#` comments."""
    if b"/*" in text:
        text = b"".join(_outside_comments(text))
    if b"--" in text or b"#" in text:
        text = _UNQUOTED_RUN.sub(_cut_line_comment, text)
    return text


def _fixed_fingerprint(statement: bytes) -> bytes | None:
    """Return the fingerprint of a statement with a rule of its own."""
    if statement.startswith(_MYSQLDUMP):
        return b"mysqldump"
    if b"/*" in statement and _TOOLKIT.search(statement):
        return b"percona-toolkit"
    if statement.startswith(_ADMINISTRATOR):
        return statement
    call = _CALL.match(statement)
    return call[1].lower() if call else None


def _outside_comments(text: bytes) -> list[bytes]:
    """Return the pieces outside of `/* */`, in linear time."""
    pieces, done, look = [], 0, 0
    while (start := text.find(b"/*", look)) >= 0:
        if text[start + 2 : start + 3] == b"!":
            look = start + 1
            continue
        end = text.find(b"*/", start + 3)
        if end < 0:
            break
        pieces.append(text[done:start])
        done = look = end + 2
    pieces.append(text[done:])
    return pieces


def _cut_line_comment(run: re.Match[bytes]) -> bytes:
    """Cut a line comment off a run, unless a quote follows the run."""
    if run.string[run.end() : run.end() + 1] in (b"'", b'"'):
        return run[0]
    comment = _DASHES_OR_HASH.search(run[0])
    return run[0][: comment.start()] if comment else run[0]


def _collapse(text: bytes) -> bytes:
    text = _LIST.sub(rb"\1(?+)", _NULL.sub(b"?", text))
    if b"union" in text:
        text = fold_unions(text)
    text = _LIMIT.sub(b"limit ?", text, count=1)
    order = _ORDER.search(text)
    if order is None:
        return text
    return text[: order.end()] + _without_asc(text[order.end() :])


def _without_asc(text: bytes) -> bytes:
    """Remove each ASC and the whitespace before it, unless nothing precedes it."""
    pieces: list[bytes] = []
    done = 0
    for asc in _ASC.finditer(text):
        if asc.start() - done > 1:
            pieces += (text[done : done + 1], text[done + 1 : asc.start()].rstrip())
            done = asc.end()
    return b"".join((*pieces, text[done:]))

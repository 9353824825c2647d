"""Writes a statement as a person would: tables, joins and predicates, without values.

The result is for reading only. Columns of a SELECT, conditions that only compare
columns of joined tables, and the rest of a list become `…`. An alias becomes the name
of its table, and a subquery that FROM begins with is merged into its statement, where
this is unambiguous. Any text has a readable form: what is not understood stays as it
is, without values and comments.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from keylag_exporters.readable_sql.select import parse_select
from keylag_exporters.readable_sql.tokens import Name, tokenize
from keylag_exporters.readable_sql.tree import (
    ELLIPSIS,
    Tree,
    nest,
    rename,
    split,
    to_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_READ = 16 << 10
"""Bytes of a statement that are read."""
MAX_READABLE = 300
"""Maximum length of a readable form, in characters."""

_BEFORE_TABLE = ("FROM", "JOIN", "STRAIGHT_JOIN", "UPDATE", "INTO")
_VALUES = r"\((?:[?, ]|\([?, ]*\))*\)"
_SHORTER = (
    (re.compile(r"\A(USE) .*"), r"\1 ?"),
    (re.compile(rf"\b(IN|VALUES) {_VALUES}(?:, {_VALUES})*"), rf"\1 (?{ELLIPSIS})"),
    (re.compile(r"\b(INTO [^ (]+)\([^()]*\)"), rf"\1 ({ELLIPSIS})"),
    (re.compile(r"\b(LIMIT \?)(?:, \?| OFFSET \?)"), r"\1"),
)


def readable_statement(statement: bytes) -> str:
    """Return the readable form; it is empty if the statement has no tokens."""
    tokens = tokenize(statement[:MAX_READ].decode("utf-8", "replace"))
    text = to_text(_strip_only_table(_shorten(nest(tokens))))
    for pattern, replacement in _SHORTER:
        text = pattern.sub(replacement, text)
    return text if len(text) <= MAX_READABLE else text[: MAX_READABLE - 1] + ELLIPSIS


def _shorten(tree: Tree) -> Tree:
    """Shorten each SELECT, also in parentheses."""
    shortened: Tree = []
    for part in split(tree, "UNION"):
        select = parse_select(part)
        shortened += ["UNION"] if shortened else []
        shortened += select.written() if select else part
    return [_shorten(one) if isinstance(one, list) else one for one in shortened]


def _strip_only_table(tree: Tree) -> Tree:
    """Remove the table from the names of columns if the statement has only one."""
    tables = list(_mentioned_tables(tree))
    if len(tables) != 1:
        return tree
    return rename(tree, lambda one: Name(one.removeprefix(f"{tables[0]}.")))


def _mentioned_tables(tree: Tree) -> Iterator[str]:
    """Yield the tables of a whole statement."""
    keyword = before = ""
    for one in tree:
        if isinstance(one, list):
            yield from _mentioned_tables(one)
        elif not isinstance(one, Name):
            keyword = one if one.isalpha() else keyword
        elif keyword in _BEFORE_TABLE and before in (keyword, ","):
            yield one
        before = one if isinstance(one, str) else ""

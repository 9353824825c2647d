"""Splits a statement into tokens, without its values.

Keywords are upper-case strings, names are `Name`, and every value is VALUE. A value
takes the rest of the statement where servers disagree on its end: from an escaped
quote, which depends on `sql_mode`, and from a comment that some versions execute.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VALUE = "?"

MAX_NAME = 64
"""Longest name in MySQL; a longer word counts as a value."""

_RESERVED = """
ALL ALTER AND AS ASC BEGIN BETWEEN BY CALL CASE COMMIT CREATE CROSS DELETE DESC DISTINCT
DROP DUPLICATE ELSE END EXISTS EXPLAIN FOR FORCE FROM GROUP HAVING IGNORE IN INDEX INNER
INSERT INTERVAL INTO IS JOIN KEY LEFT LIKE LIMIT LOCK MOD NATURAL NOT NULL OFFSET ON OR
ORDER OUTER REGEXP RELEASE REPLACE RIGHT ROLLBACK SAVEPOINT SELECT SET SHARE SHOW START
STRAIGHT_JOIN TABLE THEN TRANSACTION UNION UPDATE USE USING VALUES WHEN WHERE WITH XOR
"""
KEYWORDS = frozenset(_RESERVED.split())
_NOISE = ("ASC", "INNER", "OUTER")
_CONSTANTS = ("FALSE", "TRUE")
_BEFORE_NULL = (["IS"], ["NOT"])
_SIGNS = (["+"], ["-"])
_OPERANDS = (VALUE, ")")

_WORD = r"(?:`(?>(?:[^`]|``)*)(?:`|\Z)|@{0,2}(?:[^\W\d]|\$)[\w$]*+)"
_TOKEN = re.compile(
    rf"""
      [\s\x00-\x1f]++
    | /\*(?!M?!).*?(?:\*/|\Z)
    | /\*M?![\w\s]*+\*/
    | \#[^\n]*+
    | --(?=[\s\x00-\x1f]|\Z)[^\n]*+
    | (?P<value>
          /\*M?!.*+
        | (?:_\w++\s*+|[xbn])?'(?>(?:[^'\\]|''|\\[^'])*)(?:'|\\'.*+|\\?\Z)
        | (?:_\w++\s*+|[xbn])?"(?>(?:[^"\\]|""|\\[^"])*)(?:"|\\".*+|\\?\Z)
        | \.?[0-9](?>(?:[\w.$]|(?<=e)[+-](?=[0-9]))*)
        | :\w++
        | \?
        | \.\.\.
      )
    | (?P<name>{_WORD}(?>(?:\s*+\.\s*+(?:{_WORD}|\*))*))
    | (?P<sign><=>|<>|!=|<=|>=|:=|\|\||&&|[-+*/%=<>(),:|&^~!])
    | .
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_PART = re.compile(rf"{_WORD}|\*", re.DOTALL)
_SHOWN = re.compile(r"`?([\w$@-]+|\*)`?")


class Name(str):
    """The name of a table, a column or a function, with what qualifies it."""

    __slots__ = ()

    @property
    def column(self) -> str:
        """The name without what qualifies it."""
        return self.rpartition(".")[2]

    def moved(self, tables: Mapping[str, str]) -> Name:
        """Return the same column with another name of its table."""
        table, _, column = self.rpartition(".")
        return Name(f"{tables[table]}.{column}") if table in tables else self


def tokenize(text: str) -> list[str]:
    """Return the tokens of any text; what is no token is left out."""
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        one = _READ[match.lastgroup](match[0])
        if one == "NULL" and tokens[-1:] not in _BEFORE_NULL:
            one = VALUE
        if one == VALUE:
            _remove_sign(tokens)
        if one and (one != VALUE or tokens[-1:] != [VALUE]):
            tokens.append(one)
    return tokens


def _read_word(text: str) -> str:
    """Return a keyword, a value, a name, or nothing."""
    upper = text.upper()
    if upper in KEYWORDS:
        return "" if upper in _NOISE else upper
    if upper in _CONSTANTS:
        return VALUE
    return Name(".".join(map(_read_part, _PART.findall(text))))


def _read_part(text: str) -> str:
    shown = _SHOWN.fullmatch(text)
    return shown[1] if shown and len(shown[1]) <= MAX_NAME else VALUE


def _remove_sign(tokens: list[str]) -> None:
    """Remove the signs of the number that follows; an operator stays."""
    while tokens[-1:] in _SIGNS and not _is_operand(tokens[-2:-1]):
        tokens.pop()


def _is_operand(token: list[str]) -> bool:
    return any(isinstance(one, Name) or one in _OPERANDS for one in token)


_READ: Mapping[str | None, Callable[[str], str]] = {
    None: lambda _: "",
    "value": lambda _: VALUE,
    "name": _read_word,
    "sign": str,
}

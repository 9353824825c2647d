"""Keylag's constant SQL comment: the route and the operation of a statement.

    /*keylag:route='POST /v3/auth/tokens',operation='validate'*/

It stands before the statement or directly after it. Values are percent-encoded
where they hold a quote, a comma or a star, so a comment never holds `*` or `''`.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

MARK = b"/*keylag:"
COMMENT = re.compile(rb"/\*keylag:([^*]*+)\*/")
MAX_VALUE = 100
MAX_COMMENT = 1000
MAX_TAGS = 1000
"""Distinct comments that are told apart; more would be a series explosion."""

_PAIR = re.compile(rb"(\w+)='([^']*+)'")


class Tag(NamedTuple):
    """What a comment says; empty strings where it says nothing."""

    route: str = ""
    operation: str = ""


NO_TAG = Tag()
MANY = Tag("other", "other")


def parse(comment: bytes) -> Tag:
    """Return the tag of a comment's inside; unknown keys are ignored."""
    pairs = dict(_PAIR.findall(comment))
    return Tag(_value(pairs.get(b"route")), _value(pairs.get(b"operation")))


def _value(raw: bytes | None) -> str:
    """Return one decoded value of bounded length."""
    return unquote((raw or b"").decode("utf-8", "replace"))[:MAX_VALUE]


class Tags:
    """Numbers the comments of a block, so that their quotes are out of the way."""

    def __init__(self) -> None:
        """Start with no comment seen; number 0 stands for too many."""
        self._numbers: dict[bytes, bytes] = {}
        self._tags = [MANY]

    def shorten(self, block: bytes) -> bytes:
        """Replace every comment by `/*keylag:NUMBER*/`, which has no quotes."""
        first, *rest = block.split(MARK)
        pieces = [first]
        known = self._numbers
        for piece in rest:
            comment, end, after = piece.partition(b"*/")
            pieces += (known.get(comment) or self._learn(comment), end, after)
        return b"".join(pieces)

    def of(self, shortened: bytes) -> Tag:
        """Return the tag of a statement out of a shortened block."""
        found = COMMENT.search(shortened) if MARK in shortened else None
        if found is None:
            return NO_TAG
        number = int(found[1]) if found[1].isdigit() and len(found[1]) < 5 else 0  # noqa: PLR2004 -- MAX_TAGS has four digits
        return self._tags[number] if number < len(self._tags) else NO_TAG

    def _learn(self, comment: bytes) -> bytes:
        """Give a comment that was not seen before its number."""
        if len(comment) > MAX_COMMENT or b"\n" in comment:
            return MARK + comment  # the mark in a literal, perhaps
        if len(self._tags) > MAX_TAGS:
            return MARK + b"0"
        short = MARK + b"%d" % len(self._tags)
        self._tags.append(parse(comment))
        self._numbers[comment] = short
        return short

"""Keylag's SQL comment: the route and the operation of a statement.

    /*keylag:route='POST /v3/auth/tokens',operation='validate'*/

It precedes or directly follows the statement. Quotes, commas and stars in values are
percent-encoded, so the comment contains neither `*` nor `''`.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

PREFIX = b"/*keylag:"
COMMENT = re.compile(rb"/\*keylag:([^*]*+)\*/")
MAX_VALUE = 100
MAX_COMMENT = 1000
MAX_TAGS = 1000
"""Maximum of distinct comments, which bounds the number of series."""

_PAIR = re.compile(rb"(\w+)='([^']*+)'")


class Tag(NamedTuple):
    """Route and operation of a comment; missing values are empty strings."""

    route: str = ""
    operation: str = ""


NO_TAG = Tag()
OTHER_TAG = Tag("other", "other")


def parse(comment: bytes) -> Tag:
    """Return the tag of a comment without its delimiters; unknown keys are ignored."""
    pairs = dict(_PAIR.findall(comment))
    return Tag(_value(pairs.get(b"route")), _value(pairs.get(b"operation")))


def _value(raw: bytes | None) -> str:
    return unquote((raw or b"").decode("utf-8", "replace"))[:MAX_VALUE]


class TagTable:
    """Replaces the comments of a chunk by numbers, which contain no quotes."""

    def __init__(self) -> None:
        """Reserve number 0 for comments beyond MAX_TAGS."""
        self._numbers: dict[bytes, bytes] = {}
        self._tags = [OTHER_TAG]

    def number_comments(self, chunk: bytes) -> bytes:
        """Replace every comment by `/*keylag:NUMBER*/`."""
        first, *rest = chunk.split(PREFIX)
        pieces = [first]
        numbers = self._numbers
        for piece in rest:
            comment, end, after = piece.partition(b"*/")
            pieces += (numbers.get(comment) or self._register(comment), end, after)
        return b"".join(pieces)

    def tag_of(self, shortened: bytes) -> Tag:
        """Return the tag of a statement whose comments are numbered."""
        found = COMMENT.search(shortened) if PREFIX in shortened else None
        if found is None:
            return NO_TAG
        number = int(found[1]) if found[1].isdigit() and len(found[1]) < 5 else 0  # noqa: PLR2004 -- MAX_TAGS has four digits
        return self._tags[number] if number < len(self._tags) else NO_TAG

    def _register(self, comment: bytes) -> bytes:
        """Assign the next number to a new comment; return its replacement."""
        if len(comment) > MAX_COMMENT or b"\n" in comment:
            return PREFIX + comment  # probably the prefix within a literal
        if len(self._tags) > MAX_TAGS:
            return PREFIX + b"0"
        short = PREFIX + b"%d" % len(self._tags)
        self._tags.append(parse(comment))
        self._numbers[comment] = short
        return short

"""Fold repeated branches of a UNION as pt-query-digest does, but in linear time.

The rule: from a SELECT on, the shortest text that is followed by UNION and the same
text again becomes that text and a note. A regular expression with a back reference
says the same; it tries every SELECT against every UNION, character by character.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SELECT = re.compile(rb"\bselect\s")
_JOINT = re.compile(rb"(?=\sunion(?:\sall)?\s(select\s))")
_UNION = re.compile(rb"(\sunion(?:\sall)?)\s")

PROBE_BYTES = 32
"""Compared first: most branches that differ do so at their start."""

WORK_PER_BYTE = 64
FREE_WORK = 1 << 20
"""What may be compared, in bytes. Only a text made to be slow needs more; of such a
text the branches found so far are folded."""


def fold_unions(text: bytes) -> bytes:
    """Replace each repeated branch, with its repetitions, by one and a note."""
    repeats = _Repeats(text)
    pieces: list[bytes] = []
    done = 0
    for select in _SELECT.finditer(text) if repeats.joints else ():
        start = select.start()
        end = repeats.end_of_branch(start) if start >= done else 0
        if end:
            union, after = _last_repetition(text, start, end)
            pieces += (text[done:end], b" /*repeat", union, b"*/")
            done = after
    return b"".join((*pieces, text[done:]))


def _last_repetition(text: bytes, start: int, end: int) -> tuple[bytes, int]:
    """Return the UNION before the last repetition of a branch, and where that ends."""
    branch, union = text[start:end], b""
    while (found := _UNION.match(text, end)) and text.startswith(branch, found.end()):
        union, end = found[1], found.end() + len(branch)
    return union, end


class _Repeats:
    """Finds the branches of one text that come again directly behind a UNION."""

    def __init__(self, text: bytes) -> None:
        self.joints = [(one.start(), one.start(1)) for one in _JOINT.finditer(text)]
        self._text = text
        self._ends = [end for end, _ in self.joints]
        self._work = FREE_WORK + WORK_PER_BYTE * len(text)
        self._alike: dict[bytes, list[int]] = {}
        for number, (_, start) in enumerate(self.joints):
            following = self._next_joint(start)
            if following < len(self.joints):
                branch = text[start : self._ends[following]]
                self._alike.setdefault(branch, []).append(number)
        self._lengths = set(map(len, self._alike))

    def end_of_branch(self, start: int) -> int:
        """Return the first end of a repeated branch that starts here; 0 for none."""
        first = self._next_joint(start)
        for number in self._candidates(start, first):
            end, again = self.joints[number]
            if self._work < 0:
                break
            if self._is_same(start, end - start, again):
                return end
        return 0

    def _next_joint(self, start: int) -> int:
        """Return the number of the first joint behind `select` and a space."""
        return bisect_left(self._ends, start + len(b"select "))

    def _candidates(self, start: int, first: int) -> Iterator[int]:
        """Yield the joints before which a repeated branch may end, in their order.

        A branch that has a UNION inside can come again only where its part before
        that UNION does. The second joint is tried always, since it may overlap.
        """
        yield from range(first, min(first + 2, len(self.joints)))
        length = self._ends[first] - start if first < len(self.joints) else -1
        if length in self._lengths:
            self._work -= length
            alike = self._alike.get(self._text[start : start + length], [])
            for at in range(bisect_left(alike, first + 2), len(alike)):
                yield alike[at]

    def _is_same(self, start: int, length: int, again: int) -> bool:
        """Tell whether the text from one place is found again at another."""
        for size in (min(length, PROBE_BYTES), length):
            self._work -= size
            if not self._text.startswith(self._text[start : start + size], again):
                return False
        return True

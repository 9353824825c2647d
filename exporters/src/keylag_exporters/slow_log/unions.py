"""Folds repeated branches of a UNION as pt-query-digest does, in linear time.

The rule: from each SELECT on, the shortest text that is followed by UNION and the same
text again is replaced by that text and a `/*repeat*/` comment. pt-query-digest uses a
regular expression with a back-reference, which compares every SELECT with every UNION.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SELECT = re.compile(rb"\bselect\s")
_BOUNDARY = re.compile(rb"(?=\sunion(?:\sall)?\s(select\s))")
_UNION = re.compile(rb"(\sunion(?:\sall)?)\s")

PROBE_BYTES = 32
"""Compared first: most different branches differ in their first bytes."""

WORK_PER_BYTE = 64
MIN_WORK = 1 << 20
"""Maximum of compared bytes. Only hostile texts need more; of these, the branches found
so far are folded."""


def fold_unions(text: bytes) -> bytes:
    """Replace each repeated branch by one and a `/*repeat*/` comment."""
    repeats = _RepeatedBranches(text)
    pieces: list[bytes] = []
    done = 0
    for select in _SELECT.finditer(text) if repeats.boundaries else ():
        start = select.start()
        end = repeats.end_of_branch(start) if start >= done else 0
        if end:
            union, after = _last_repetition(text, start, end)
            pieces += (text[done:end], b" /*repeat", union, b"*/")
            done = after
    return b"".join((*pieces, text[done:]))


def _last_repetition(text: bytes, start: int, end: int) -> tuple[bytes, int]:
    """Return the UNION before a branch's last repetition, and its end."""
    branch, union = text[start:end], b""
    while (found := _UNION.match(text, end)) and text.startswith(branch, found.end()):
        union, end = found[1], found.end() + len(branch)
    return union, end


class _RepeatedBranches:
    """Finds the branches of one text that are repeated directly after a UNION."""

    def __init__(self, text: bytes) -> None:
        self.boundaries = [
            (one.start(), one.start(1)) for one in _BOUNDARY.finditer(text)
        ]
        self._text = text
        self._ends = [end for end, _ in self.boundaries]
        self._remaining_work = MIN_WORK + WORK_PER_BYTE * len(text)
        self._numbers_by_branch: dict[bytes, list[int]] = {}
        for number, (_, start) in enumerate(self.boundaries):
            following = self._next_boundary(start)
            if following < len(self.boundaries):
                branch = text[start : self._ends[following]]
                self._numbers_by_branch.setdefault(branch, []).append(number)
        self._lengths = set(map(len, self._numbers_by_branch))

    def end_of_branch(self, start: int) -> int:
        """Return the first end of a repeated branch that starts here, or 0."""
        first = self._next_boundary(start)
        for number in self._candidates(start, first):
            end, other_start = self.boundaries[number]
            if self._remaining_work < 0:
                break
            if self._is_equal(start, end - start, other_start):
                return end
        return 0

    def _next_boundary(self, start: int) -> int:
        """Return the index of the first boundary after the SELECT at `start`."""
        return bisect_left(self._ends, start + len(b"select "))

    def _candidates(self, start: int, first: int) -> Iterator[int]:
        """Yield the boundaries that may end a repeated branch, in order.

        A branch with an inner UNION repeats only where its part before that UNION does.
        The second boundary is always a candidate, because it may overlap.
        """
        yield from range(first, min(first + 2, len(self.boundaries)))
        length = self._ends[first] - start if first < len(self.boundaries) else -1
        if length in self._lengths:
            self._remaining_work -= length
            numbers = self._numbers_by_branch.get(
                self._text[start : start + length], []
            )
            for at in range(bisect_left(numbers, first + 2), len(numbers)):
                yield numbers[at]

    def _is_equal(self, start: int, length: int, other_start: int) -> bool:
        """Return whether `length` bytes at two offsets are equal."""
        for size in (min(length, PROBE_BYTES), length):
            self._remaining_work -= size
            if not self._text.startswith(self._text[start : start + size], other_start):
                return False
        return True

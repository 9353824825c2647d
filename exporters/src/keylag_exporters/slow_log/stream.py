"""Feed a digest from a stream of bytes, cut wherever they happen to be cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keylag_exporters.slow_log.events import SEPARATOR

if TYPE_CHECKING:
    from keylag_exporters.slow_log.digest import Digest

BLOCK_BYTES = 64 << 10
"""A block and what is made of it stay in the processor's cache."""
MAX_EVENT_BYTES = 64 << 20
_WINDOWS = b";\r\n#"
_HEADER_ENDS = (b"SET timestamp=", b"SET last_insert_id=", b"SET insert_id=", b"use ")
_OVERLAP = len(_WINDOWS) - 1


class Stream:
    """Collects bytes until whole events are there; holds the rest.

    `held` is the number of bytes taken but not yet counted: a position in the
    file less `held` is where a restart has to read on.
    """

    def __init__(self, digest: Digest) -> None:
        self.digest = digest
        self.held = 0
        self._pieces: list[bytes] = []
        self._too_long = False

    def write(self, data: bytes) -> None:
        """Take bytes, count the events that they complete."""
        start = b"".join(piece[-_OVERLAP:] for piece in self._pieces[-_OVERLAP:])
        start = start[-_OVERLAP:] + data[:_OVERLAP]
        self._pieces.append(data)
        self.held += len(data)
        if _separates(data) or _separates(start):
            self._cut()
        elif self.held > MAX_EVENT_BYTES:
            self._drop()

    def finish(self) -> None:
        """Count what is held as the last event, whole or not."""
        text = b"".join(self._pieces).replace(b";\r\n", b";\n")
        text = text[:-1] if text.endswith(b";\n\n") else text
        self._pieces, self.held = [], 0
        if text.strip():
            self._feed(text.removesuffix(b";\n") + SEPARATOR)
        self._too_long = False

    @property
    def ends_whole(self) -> bool:
        """Tell whether what is held looks like a complete last event."""
        tail = b"".join(self._pieces[-_OVERLAP:])
        if not tail.endswith((b";\n", b";\r\n")):
            return False
        text = b"".join(self._pieces)
        return not _is_header(text, len(text) - len(b";\n"))

    def _cut(self) -> None:
        """Feed everything up to the last separator."""
        text = b"".join(self._pieces)
        end = _last_end(text, len(text))
        if end > 0 and _is_header(text, end):
            end = _last_end(text, end)
        if end < 0:
            return
        end = text.index(b"#", end)
        self._pieces = [text[end:]]
        self.held = len(text) - end
        self._feed(text[: end + 1])

    def _drop(self) -> None:
        """Give up on an event of absurd length: nobody has the memory for it."""
        self._too_long = True
        last = self._pieces[-1][-_OVERLAP:]
        self._pieces, self.held = [last], len(last)

    def _feed(self, block: bytes) -> None:
        """Count a block of whole events, each but the first after a separator."""
        if self._too_long:
            self._too_long = False
            self.digest.skipped += 1
            block = block[_first_end(block) :]
        if b"\r" in block and _WINDOWS in block:
            block = block.replace(b"\r\n", b"\n")
        if block:
            self.digest.feed(block)


def _separates(data: bytes) -> bool:
    """Tell whether an event ends within these bytes."""
    return SEPARATOR in data or (b"\r" in data and _WINDOWS in data)


def _last_end(text: bytes, before: int) -> int:
    """Return where the last separator before an offset is; -1 without one."""
    end = text.rfind(SEPARATOR, 0, before)
    return max(end, text.rfind(_WINDOWS, 0, before)) if b"\r" in text else end


def _is_header(text: bytes, end: int) -> bool:
    """Tell whether a text ends with an event's header, before its statement.

    A separator behind it is none: commands begin with a hash. USE, when it is the
    statement, looks like a header, and so waits for the next event.
    """
    return text.startswith(_HEADER_ENDS, text.rfind(b"\n", 0, end) + 1)


def _first_end(block: bytes) -> int:
    """Return where the second event of a block starts."""
    found = [at for at in (block.find(SEPARATOR), block.find(_WINDOWS)) if at >= 0]
    return block.index(b"#", min(found))

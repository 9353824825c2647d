"""Feed a digest from a stream of bytes, cut wherever they happen to be cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keylag_exporters.slow_log.events import SEPARATOR

if TYPE_CHECKING:
    from keylag_exporters.slow_log.digest import Digest

BLOCK_BYTES = 256 << 10
MAX_EVENT_BYTES = 64 << 20
_WINDOWS = b";\r\n#"
_OVERLAP = len(_WINDOWS) - 1


class Stream:
    """Collects bytes until whole events are there; holds the rest.

    `held` is the number of bytes taken but not yet counted: a position in the
    file minus `held` is where a restart has to read on.
    """

    def __init__(self, digest: Digest) -> None:
        self.digest = digest
        self._pieces: list[bytes] = []
        self.held = 0
        self._started = False
        self._dropping = False

    def write(self, data: bytes) -> None:
        """Take bytes, count the events that they complete."""
        self._pieces.append(data)
        self.held += len(data)
        seam = b"".join(self._pieces[-2:])[-len(data) - _OVERLAP :]
        if SEPARATOR in seam or _WINDOWS in seam:
            self._cut()
        elif self.held > MAX_EVENT_BYTES:
            self._drop()

    def finish(self) -> None:
        """Count what is held as the last event, whole or not."""
        text = b"".join(self._pieces)
        self._pieces, self.held = [], 0
        if text.strip() and not self._dropping:
            self._feed(text.removesuffix(b"#") + b"#" if text.endswith(b";\n") else text + SEPARATOR)
        self._started = self._dropping = False

    @property
    def ends_whole(self) -> bool:
        """Tell whether what is held looks like a complete last event."""
        tail = b"".join(self._pieces[-2:])
        return tail.endswith((b";\n", b";\r\n"))

    def _cut(self) -> None:
        """Feed everything up to the last separator."""
        text = b"".join(self._pieces)
        end = text.rfind(SEPARATOR)
        end = text.rfind(_WINDOWS) + 1 if end < 0 else end
        end = text.index(b"#", end)
        rest = text[end:]
        self._pieces, self.held = [rest], len(rest)
        self._feed(text[: end + 1])

    def _drop(self) -> None:
        """Give up on an event of absurd length: nobody has the memory for it."""
        if not self._dropping:
            self.digest.skipped += 1
        self._dropping = True
        last = self._pieces[-1][-_OVERLAP:]
        self._pieces, self.held = [last], len(last)

    def _feed(self, block: bytes) -> None:
        """Count a block, which begins with the hash of its first event."""
        if self._dropping:
            self._dropping = False
            block = block[block.find(b"\n#", block.find(b";")) + 1 :]
        if _WINDOWS in block:
            block = block.replace(b"\r\n", b"\n")
        self.digest.feed(block[1:] if block.startswith(b"#") else block)

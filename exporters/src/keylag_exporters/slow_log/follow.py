"""Follow a slow log through whatever happens to the file."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from typing import IO, TYPE_CHECKING

from keylag_exporters.model import UnreachableError
from keylag_exporters.slow_log.position import Position, siblings
from keylag_exporters.slow_log.stream import BLOCK_BYTES, Stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from keylag_exporters.slow_log.digest import Digest

LOG = logging.getLogger("keylag_exporters.slow_log")

GRACE_SECONDS = 30.0
"""How long a renamed file is still read: the server may be slow to let go of it."""


class Tail:
    """One open file, read to its end again and again."""

    def __init__(
        self, path: Path, digest: Digest, offset: int = 0, stream: Stream | None = None
    ) -> None:
        self.file: IO[bytes] = path.open("rb", buffering=0)
        self.offset = offset
        self.quiet_since = 0.0
        self._digest = digest
        self._stream = stream or Stream(digest)
        self._seen = Position.at(self.file, offset)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        status = os.fstat(self.file.fileno())
        return status.st_dev, status.st_ino

    @property
    def behind(self) -> int:
        """Bytes that are there but not read."""
        return max(0, os.fstat(self.file.fileno()).st_size - self.offset)

    @property
    def position(self) -> Position:
        """Where a restart has to read on: after the last event that was counted."""
        return Position.at(self.file, self.offset - self._stream.held)

    @property
    def was_cut(self) -> bool:
        """Tell whether what was read is not in the file any more."""
        return not self._seen.fits(self.file)

    def read(self, most: int, now: float) -> int:
        """Read up to `most` bytes and count them; return how many there were."""
        taken = 0
        while taken < most:
            data = os.pread(self.file.fileno(), BLOCK_BYTES, self.offset + taken)
            if not data:
                break
            self._stream.write(data)
            taken += len(data)
        if taken:
            self.offset += taken
            self._seen = Position.at(self.file, self.offset)
            self.quiet_since = now
        elif self._stream.held and self._stream.ends_whole:
            self._stream.finish()
        return taken

    def restart(self) -> tuple[Position, Stream]:
        """Go on at the top; return where reading was and what is held from there."""
        before = self._seen, self._stream
        self._stream, self.offset = Stream(self._digest), 0
        self._seen = Position.at(self.file, 0)
        return before

    def close(self) -> None:
        """Count what is left and close the file."""
        self._stream.finish()
        self.file.close()


class Follower:
    """Reads one log and, for a while, the files that it was renamed to."""

    def __init__(
        self, path: Path, digest: Digest, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.read_bytes = 0
        self.changes = {"renamed": 0, "truncated": 0}
        self._path = path
        self._digest = digest
        self._clock = clock
        self._now: Tail | None = None
        self._old: list[Tail] = []

    def open(self, *, at_end: bool) -> None:
        """Start at the end of the log, or at its start; `poll` tells of an error."""
        with contextlib.suppress(OSError):
            offset = self._path.stat().st_size if at_end else 0
            self._now = Tail(self._path, self._digest, offset)

    def resume(self, positions: list[Position]) -> bool:
        """Read on from saved positions; False when none of the files is there."""
        files = siblings(self._path)
        found = dict(filter(None, (self._find(one, files) for one in positions)))
        if not found:
            return False
        oldest = min(files.index(path) for path in found)
        for path in files[oldest:]:
            self._old.append(Tail(path, self._digest, found.get(path, 0)))
        self._now = self._old.pop() if files[-1] == self._path else None
        return True

    @staticmethod
    def _find(position: Position, files: list[Path]) -> tuple[Path, int] | None:
        """Return the file that has a position, the newest if several do."""
        for path in reversed(files):
            with path.open("rb") as file:
                if position.fits(file):
                    return path, position.offset
        return None

    @property
    def positions(self) -> list[Position]:
        """Where a restart has to read on, in each of the open files."""
        return [tail.position for tail in self._tails]

    @property
    def behind(self) -> int:
        """Bytes written but not read."""
        return sum(tail.behind for tail in self._tails)

    @property
    def _tails(self) -> list[Tail]:
        return [*self._old, *([self._now] if self._now else [])]

    def poll(self, most: int) -> int:
        """Read what is new, at most about `most` bytes; return how many there were.

        Raises UnreachableError when the log is not there or may not be read.
        """
        taken = self._poll_old(most)
        try:
            taken += self._poll_now(most)
        except OSError as error:
            message = f"cannot read {self._path}: {error.strerror}"
            raise UnreachableError(message) from error
        finally:
            self.read_bytes += taken
        return taken

    def _poll_old(self, most: int) -> int:
        """Read renamed files; let go of those that stay quiet."""
        taken, keep, now = 0, [], self._clock()
        for tail in self._old:
            taken += tail.read(most, now)
            if tail.behind or now - tail.quiet_since < GRACE_SECONDS:
                keep.append(tail)
            else:
                tail.close()
        self._old = keep
        return taken

    def _poll_now(self, most: int) -> int:
        """Read the log; notice first what happened to it."""
        if self._now is None:
            self._now = Tail(self._path, self._digest)
        if self._now.was_cut:
            self._truncated(self._now)
        taken = self._now.read(most, self._clock())
        with contextlib.suppress(FileNotFoundError):  # between rename and new file
            status = self._path.stat()
            renamed = (status.st_dev, status.st_ino) != self._now.identity
            if renamed and not self._now.behind:
                taken += self._renamed(self._now, most)
        return taken

    def _renamed(self, tail: Tail, most: int) -> int:
        """Go over to the new file; keep an eye on the old one."""
        LOG.info("%s was renamed, following the new file", self._path)
        self.changes["renamed"] += 1
        tail.quiet_since = self._clock()
        self._old.append(tail)
        self._now = Tail(self._path, self._digest)
        return self._now.read(most, self._clock())

    def _truncated(self, tail: Tail) -> None:
        """Start again at the top; first read what a copy has that we have not."""
        LOG.info("%s was truncated, starting at its top", self._path)
        self.changes["truncated"] += 1
        position, stream = tail.restart()
        copies = [path for path in siblings(self._path) if path != self._path]
        copy = self._find(position, copies) if position.offset else None
        if copy:
            self._old.append(Tail(copy[0], self._digest, copy[1], stream))
            self._old[-1].quiet_since = self._clock()
        else:
            stream.finish()

    def close(self) -> None:
        """Close the files; what is held stays uncounted, for the next start."""
        for tail in self._tails:
            tail.file.close()
        self._old, self._now = [], None

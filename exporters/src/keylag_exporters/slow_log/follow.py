"""Follow a slow log through whatever happens to the file."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from keylag_exporters.model import UnreachableError
from keylag_exporters.slow_log.position import Position, find, open_log, siblings
from keylag_exporters.slow_log.stream import BLOCK_BYTES, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from keylag_exporters.slow_log.digest import Digest

LOG = logging.getLogger("keylag_exporters.slow_log")

GRACE_SECONDS = 30.0
"""How long a renamed file is still read, since the server may be slow to let go of it,
and how long a rotated file that cannot be opened is tried again."""


@dataclass(frozen=True)
class Missing:
    """A place in a file that is not open: where it was, and what is held from there."""

    position: Position
    stream: Stream
    until: float
    """When to stop looking for the file."""


class Tail:
    """One open file, read to its end again and again."""

    def __init__(
        self, path: Path, digest: Digest, offset: int = 0, stream: Stream | None = None
    ) -> None:
        with contextlib.ExitStack() as opened:
            self.file: IO[bytes] = opened.enter_context(open_log(path))
            self.seen = Position.at(self.file, offset)
            opened.pop_all()
        self.offset = offset
        self.quiet_since = 0.0
        self.stream = stream or Stream(digest)
        self._digest = digest

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
        return Position.at(self.file, self.offset - self.stream.held)

    @property
    def was_cut(self) -> bool:
        """Tell whether what was read is not in the file any more."""
        return not self.seen.fits(self.file)

    def read(self, most: int, now: float) -> int:
        """Read up to `most` bytes and count them; return how many there were."""
        start = self.offset
        while self.offset - start < most:
            data = os.pread(self.file.fileno(), BLOCK_BYTES, self.offset)
            if not data:
                break
            self.offset += len(data)
            self.stream.write(data)
        if self.offset > start:
            self.seen = Position.at(self.file, self.offset)
            self.quiet_since = now
        elif self.stream.held and self.stream.ends_whole:
            self.stream.finish()
        return self.offset - start

    def restart(self) -> None:
        """Go on at the top of the file."""
        self.seen = Position.at(self.file, 0)
        self.stream, self.offset = Stream(self._digest), 0

    def close(self) -> None:
        """Count what is left and close the file."""
        self.stream.finish()
        self.file.close()


class Follower:
    """Reads one log and, for a while, the files that it was renamed to.

    An error is not the end: whatever could not be opened or read is tried again by
    the next `poll`. `errors` counts such tries, `lost` the files that were given up.
    """

    def __init__(
        self, path: Path, digest: Digest, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.read_bytes = self.errors = self.lost = 0
        self.changes = {"renamed": 0, "truncated": 0}
        self.place = "start"
        self._at_end: bool | None = None
        self._path = path
        self._digest = digest
        self._clock = clock
        self._now: Tail | None = None
        self._old: list[Tail] = []
        self._missing: list[Missing] = []
        self._saved: list[Position] = []
        self._patient_until = 0.0

    def open(self, *, at_end: bool) -> None:
        """Begin at the end of the log, or at its start; a log made later at its start.

        The place is that of this moment, even if the file cannot be opened yet; of a
        log that may not even be looked at, that of the moment when it may.
        """
        self._at_end = at_end
        with contextlib.suppress(OSError):
            self._place()

    def _place(self) -> None:
        """Find the place to begin at; raise OSError if it cannot be known yet."""
        at_end = bool(self._at_end)
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._at_end = None
            return
        self._at_end = None
        self.resume([Position(status.st_size * at_end, "", status.st_ino)])
        self.place = "end" if at_end else "start"

    def resume(self, positions: list[Position]) -> None:
        """Read on from saved positions, as soon as their files can be opened."""
        self.place = "saved"
        self._saved = positions
        self._patient_until = self._clock() + GRACE_SECONDS

    @property
    def positions(self) -> list[Position] | None:
        """Where a restart has to read on, in each of the files; None if not known."""
        if self._at_end is not None:
            return None
        missing = [one.position for one in self._missing]
        return self._saved or missing + [tail.position for tail in self._tails]

    @property
    def behind(self) -> int:
        """Bytes written but not read, also those of a new file that is not open."""
        behind = 0
        for tail in self._tails:
            with contextlib.suppress(OSError):
                behind += tail.behind
        with contextlib.suppress(OSError):
            status = self._path.stat()
            if self._now and self._now.identity != (status.st_dev, status.st_ino):
                behind += status.st_size
        return behind

    @property
    def _tails(self) -> list[Tail]:
        return [*self._old, *([self._now] if self._now else [])]

    def poll(self, most: int) -> int:
        """Read what is new, at most about `most` bytes; return how many there were.

        Raises UnreachableError when the log is not there or may not be read.
        """
        before = self.read_bytes
        try:
            if self._at_end is not None:
                self._place()
            if self._saved:
                self._resume()
            self._search()
            self._poll_old(most)
            self._poll_now(most)
        except OSError as error:
            self.errors += 1
            message = f"cannot read {error.filename or self._path}: {error.strerror}"
            raise UnreachableError(message) from error
        return self.read_bytes - before

    def _resume(self) -> None:
        """Open the files that have the saved positions, and all that are newer.

        Nothing is opened unless everything is. A rotated file that stays unreadable
        is given up after a while, the log itself is not.
        """
        files = siblings(self._path)
        offsets: dict[Path, int] = {}
        for position in self._saved:
            with self._patience():
                if path := find(position, files):
                    offsets[path] = max(position.offset, offsets.get(path, 0))
        if not offsets and self._path not in files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not offsets:
            self._lose("no file has the saved position: beginning at the start")
            self.place = "start"
        oldest = min(map(files.index, offsets), default=len(files) - 1)
        with contextlib.ExitStack() as opened:
            tails = {}
            for path in files[oldest:]:
                with self._patience():
                    tails[path] = self._tail(path, offsets.get(path, 0))
                    opened.callback(tails[path].file.close)
            opened.pop_all()
        self._now = tails.pop(self._path, None)
        self._old, self._saved = list(tails.values()), []

    @contextlib.contextmanager
    def _patience(self) -> Iterator[None]:
        """Raise errors, to try all again; of a rotated file only for a while."""
        try:
            yield
        except OSError as error:
            is_log = error.filename == str(self._path)
            if is_log or self._clock() < self._patient_until:
                raise
            self._lose(f"{error.filename} cannot be opened: {error.strerror}")

    def _search(self) -> None:
        """Look for the files that are missing, and read on in those that are found."""
        for one in self._missing[:]:
            try:
                is_found = self._find(one)
            except OSError:
                self.errors += 1
                if self._now is None or self._clock() < one.until:
                    continue
                is_found = False
            self._missing.remove(one)
            if not is_found:
                one.stream.finish()
                self._lose("what was written after the last look at it is gone")

    def _find(self, one: Missing) -> bool:
        """Read on in a missing file; False if there is none that it can be."""
        is_open = [self._path] if self._now else []
        files = [path for path in siblings(self._path) if path not in is_open]
        path = find(one.position, files)
        if path is None:
            return False
        tail = self._tail(path, one.position.offset, one.stream)
        if path == self._path:
            self._now = tail
        else:
            self._old.append(tail)
        return True

    def _poll_old(self, most: int) -> None:
        """Read renamed files; close those that stay quiet, or unreadable."""
        now = self._clock()
        for tail in self._old[:]:
            is_quiet = now - tail.quiet_since >= GRACE_SECONDS
            try:
                taken = tail.read(most, now)
                self.read_bytes += taken
                is_over = is_quiet and not taken
            except OSError as error:
                self.errors += 1
                is_over = is_quiet
                if is_over:
                    self._lose(f"a renamed file cannot be read: {error.strerror}")
            if is_over:
                self._old.remove(tail)
                tail.close()

    def _poll_now(self, most: int) -> None:
        """Read the log; notice first what happened to it."""
        tail = self._now = self._now or self._tail(self._path)
        try:
            if tail.was_cut:
                self._truncated(tail)
            self.read_bytes += tail.read(most, self._clock())
            is_read = not tail.behind
        except OSError:
            self._miss(tail)
            self._now = None
            tail.file.close()
            raise
        with contextlib.suppress(FileNotFoundError):  # between rename and new file
            status = self._path.stat()
            if is_read and tail.identity != (status.st_dev, status.st_ino):
                self._renamed(tail, most)

    def _renamed(self, tail: Tail, most: int) -> None:
        """Go over to the new file; keep an eye on the old one."""
        self._now = self._tail(self._path)
        LOG.info("%s was renamed, following the new file", self._path)
        self.changes["renamed"] += 1
        tail.quiet_since = self._clock()
        self._old.append(tail)
        self.read_bytes += self._now.read(most, self._clock())

    def _truncated(self, tail: Tail) -> None:
        """Start again at the top; a copy may have what was not read before."""
        LOG.info("%s was truncated, starting at its top", self._path)
        self.changes["truncated"] += 1
        self._miss(tail)
        tail.restart()

    def _miss(self, tail: Tail) -> None:
        """Remember where a file was read to, in order to find it again."""
        if tail.offset:
            until = self._clock() + GRACE_SECONDS
            self._missing.append(Missing(tail.seen, tail.stream, until))

    def _tail(self, path: Path, offset: int = 0, stream: Stream | None = None) -> Tail:
        """Open a file from an offset on."""
        tail = Tail(path, self._digest, offset, stream)
        tail.quiet_since = self._clock()
        return tail

    def _lose(self, reason: str) -> None:
        """Count and log a file that is not read to its end."""
        self.lost += 1
        LOG.warning("%s: %s", self._path, reason)

    def close(self) -> None:
        """Close the files; what is held stays uncounted, for the next start."""
        for tail in self._tails:
            tail.file.close()
        self._old, self._now = [], None

"""Follows a slow log through rotation, truncation, errors and restarts."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from keylag_exporters.model import UnreachableError
from keylag_exporters.slow_log.event_splitter import CHUNK_BYTES, EventSplitter
from keylag_exporters.slow_log.position import Position, find_file, log_files, open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from keylag_exporters.slow_log.aggregator import StatementAggregator

LOG = logging.getLogger("keylag_exporters.slow_log")

GRACE_SECONDS = 30.0
"""How long a renamed file is still read, because the server may keep writing to it, and
how long opening a rotated file is retried."""


@dataclass(frozen=True)
class MissingFile:
    """A position in a file that is not open, and the bytes buffered from there."""

    position: Position
    splitter: EventSplitter
    deadline: float
    """When to give up the search for the file."""


class TailedFile:
    """An open file that is read up to its end, repeatedly."""

    def __init__(
        self,
        path: Path,
        aggregator: StatementAggregator,
        offset: int = 0,
        splitter: EventSplitter | None = None,
    ) -> None:
        with contextlib.ExitStack() as opened:
            self.file: IO[bytes] = opened.enter_context(open_log(path))
            self.last_position = Position.at(self.file, offset)
            opened.pop_all()
        self.offset = offset
        self.quiet_since = 0.0
        self.splitter = splitter or EventSplitter(aggregator)
        self._aggregator = aggregator

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        status = os.fstat(self.file.fileno())
        return status.st_dev, status.st_ino

    @property
    def unread_bytes(self) -> int:
        """Bytes between the offset and the end of the file."""
        return max(0, os.fstat(self.file.fileno()).st_size - self.offset)

    @property
    def position(self) -> Position:
        """Where a restart resumes: after the last counted event."""
        return Position.at(self.file, self.offset - self.splitter.buffered_bytes)

    @property
    def was_truncated(self) -> bool:
        """Whether the bytes before the offset have changed or are gone."""
        return not self.last_position.matches(self.file)

    def read(self, max_bytes: int, now: float) -> int:
        """Read and count up to `max_bytes`; return the number of bytes read."""
        start = self.offset
        while self.offset - start < max_bytes:
            data = os.pread(self.file.fileno(), CHUNK_BYTES, self.offset)
            if not data:
                break
            self.offset += len(data)
            self.splitter.write(data)
        if self.offset > start:
            self.last_position = Position.at(self.file, self.offset)
            self.quiet_since = now
        elif self.splitter.buffered_bytes and self.splitter.ends_with_event:
            self.splitter.finish()
        return self.offset - start

    def restart(self) -> None:
        """Continue at the start of the file."""
        self.last_position = Position.at(self.file, 0)
        self.splitter, self.offset = EventSplitter(self._aggregator), 0

    def close(self) -> None:
        """Count the buffered bytes and close the file."""
        self.splitter.finish()
        self.file.close()


class Follower:
    """Reads a log, and for GRACE_SECONDS the files that it was renamed to.

    Each `poll` retries what could not be opened or read. `read_errors` counts these
    failures, `lost_files` the files that were given up.
    """

    def __init__(
        self,
        path: Path,
        aggregator: StatementAggregator,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.read_bytes = self.read_errors = self.lost_files = 0
        self.file_changes = {"renamed": 0, "truncated": 0}
        self.start_place = "start"
        self._at_end: bool | None = None
        self._path = path
        self._aggregator = aggregator
        self._clock = clock
        self._current: TailedFile | None = None
        self._rotated: list[TailedFile] = []
        self._missing_files: list[MissingFile] = []
        self._saved_positions: list[Position] = []
        self._retry_deadline = 0.0

    def open(self, *, at_end: bool) -> None:
        """Start at the end or the start of the log; a log created later at its start.

        The end is that of this moment, even if the file is unreadable now; if its size
        is unknown now, that of the moment when it becomes known.
        """
        self._at_end = at_end
        with contextlib.suppress(OSError):
            self._resolve_start()

    def _resolve_start(self) -> None:
        """Determine where to start; raise OSError if this is unknown yet."""
        at_end = bool(self._at_end)
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._at_end = None
            return
        self._at_end = None
        self.resume([Position(status.st_size * at_end, "", status.st_ino)])
        self.start_place = "end" if at_end else "start"

    def resume(self, positions: list[Position]) -> None:
        """Resume at saved positions, once their files can be opened."""
        self.start_place = "saved"
        self._saved_positions = positions
        self._retry_deadline = self._clock() + GRACE_SECONDS

    @property
    def positions(self) -> list[Position] | None:
        """Where a restart resumes, for each file; None if not known yet."""
        if self._at_end is not None:
            return None
        missing = [one.position for one in self._missing_files]
        return self._saved_positions or missing + [
            tail.position for tail in self._open_files
        ]

    @property
    def unread_bytes(self) -> int:
        """Bytes written but not read, including a new file that is not open yet."""
        unread_bytes = 0
        for tail in self._open_files:
            with contextlib.suppress(OSError):
                unread_bytes += tail.unread_bytes
        with contextlib.suppress(OSError):
            status = self._path.stat()
            if self._current and self._current.identity != (
                status.st_dev,
                status.st_ino,
            ):
                unread_bytes += status.st_size
        return unread_bytes

    @property
    def _open_files(self) -> list[TailedFile]:
        return [*self._rotated, *([self._current] if self._current else [])]

    def poll(self, max_bytes: int) -> int:
        """Read new bytes, about `max_bytes` per file; return their number.

        Raises UnreachableError if the log is missing or unreadable.
        """
        before = self.read_bytes
        try:
            if self._at_end is not None:
                self._resolve_start()
            if self._saved_positions:
                self._resume()
            self._reopen_missing()
            self._poll_rotated(max_bytes)
            self._poll_current(max_bytes)
        except OSError as error:
            self.read_errors += 1
            message = f"cannot read {error.filename or self._path}: {error.strerror}"
            raise UnreachableError(message) from error
        return self.read_bytes - before

    def _resume(self) -> None:
        """Open the files of the saved positions, and all newer files.

        Opens either all files or none. A rotated file that stays unreadable is given up
        after GRACE_SECONDS; the log itself never is.
        """
        files = log_files(self._path)
        offsets: dict[Path, int] = {}
        for position in self._saved_positions:
            with self._retry_until_deadline():
                if path := find_file(position, files):
                    offsets[path] = max(position.offset, offsets.get(path, 0))
        if not offsets and self._path not in files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not offsets:
            self._give_up(
                "no file matches the saved position, starting at the log's beginning"
            )
            self.start_place = "start"
        oldest = min(map(files.index, offsets), default=len(files) - 1)
        with contextlib.ExitStack() as opened:
            tails = {}
            for path in files[oldest:]:
                with self._retry_until_deadline():
                    tails[path] = self._open_file(path, offsets.get(path, 0))
                    opened.callback(tails[path].file.close)
            opened.pop_all()
        self._current = tails.pop(self._path, None)
        self._rotated, self._saved_positions = list(tails.values()), []

    @contextlib.contextmanager
    def _retry_until_deadline(self) -> Iterator[None]:
        """Propagate errors for `poll` to retry; after the deadline only the log's."""
        try:
            yield
        except OSError as error:
            is_log = error.filename == str(self._path)
            if is_log or self._clock() < self._retry_deadline:
                raise
            self._give_up(f"giving up {error.filename}: {error.strerror}")

    def _reopen_missing(self) -> None:
        """Search for the missing files and continue reading those that are found."""
        for missing in self._missing_files[:]:
            try:
                is_found = self._reopen(missing)
            except OSError:
                self.read_errors += 1
                if self._current is None or self._clock() < missing.deadline:
                    continue
                is_found = False
            self._missing_files.remove(missing)
            if not is_found:
                missing.splitter.finish()
                self._give_up("bytes written after the last poll are lost")

    def _reopen(self, missing: MissingFile) -> bool:
        """Continue reading a missing file; return False if no file matches."""
        is_open = [self._path] if self._current else []
        files = [path for path in log_files(self._path) if path not in is_open]
        path = find_file(missing.position, files)
        if path is None:
            return False
        tail = self._open_file(path, missing.position.offset, missing.splitter)
        if path == self._path:
            self._current = tail
        else:
            self._rotated.append(tail)
        return True

    def _poll_rotated(self, max_bytes: int) -> None:
        """Read rotated files; close those that are quiet or unreadable too long."""
        now = self._clock()
        for tail in self._rotated[:]:
            is_quiet = now - tail.quiet_since >= GRACE_SECONDS
            try:
                read_bytes = tail.read(max_bytes, now)
                self.read_bytes += read_bytes
                is_done = is_quiet and not read_bytes
            except OSError as error:
                self.read_errors += 1
                is_done = is_quiet
                if is_done:
                    self._give_up(f"giving up a renamed file: {error.strerror}")
            if is_done:
                self._rotated.remove(tail)
                tail.close()

    def _poll_current(self, max_bytes: int) -> None:
        """Read the log; handle truncation before and renaming after."""
        tail = self._current = self._current or self._open_file(self._path)
        try:
            if tail.was_truncated:
                self._follow_truncation(tail)
            self.read_bytes += tail.read(max_bytes, self._clock())
            is_read = not tail.unread_bytes
        except OSError:
            self._add_missing(tail)
            self._current = None
            tail.file.close()
            raise
        with contextlib.suppress(FileNotFoundError):  # renamed, and not recreated yet
            status = self._path.stat()
            if is_read and tail.identity != (status.st_dev, status.st_ino):
                self._follow_rename(tail, max_bytes)

    def _follow_rename(self, tail: TailedFile, max_bytes: int) -> None:
        """Switch to the new file; keep reading the old one for GRACE_SECONDS."""
        self._current = self._open_file(self._path)
        LOG.info("%s was renamed, following the new file", self._path)
        self.file_changes["renamed"] += 1
        tail.quiet_since = self._clock()
        self._rotated.append(tail)
        self.read_bytes += self._current.read(max_bytes, self._clock())

    def _follow_truncation(self, tail: TailedFile) -> None:
        """Restart at the start; a copy of the log may have the unread bytes."""
        LOG.info("%s was truncated, restarting at its beginning", self._path)
        self.file_changes["truncated"] += 1
        self._add_missing(tail)
        tail.restart()

    def _add_missing(self, tail: TailedFile) -> None:
        if tail.offset:
            deadline = self._clock() + GRACE_SECONDS
            self._missing_files.append(
                MissingFile(tail.last_position, tail.splitter, deadline)
            )

    def _open_file(
        self, path: Path, offset: int = 0, splitter: EventSplitter | None = None
    ) -> TailedFile:
        tail = TailedFile(path, self._aggregator, offset, splitter)
        tail.quiet_since = self._clock()
        return tail

    def _give_up(self, reason: str) -> None:
        """Count and log a file whose rest stays unread."""
        self.lost_files += 1
        LOG.warning("%s: %s", self._path, reason)

    def close(self) -> None:
        """Close all files; buffered bytes stay uncounted, for the next start."""
        for tail in self._open_files:
            tail.file.close()
        self._rotated, self._current = [], None

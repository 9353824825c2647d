"""Positions in log files, from which a restart resumes.

A file is identified by the checksum of the bytes before the position, not by its name
or inode. This holds through rename, copytruncate and re-creation. The inode decides
only if no byte was read.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

CHECKSUM_BYTES = 1024
FORMAT = 1
_ROTATED_SUFFIX = r"[-.](\d[\d-]*|old|bak|prev)"
"""Suffixes that logrotate and administrators append to the name of a log."""


@dataclass(frozen=True)
class Position:
    """An offset, the checksum of up to CHECKSUM_BYTES before it, and the inode.

    At offset 0 or without a checksum, the inode must match; inode 0 matches any.
    """

    offset: int
    checksum: str
    inode: int = 0

    @classmethod
    def at(cls, file: IO[bytes], offset: int) -> Position:
        """Return the position at an offset of an open file."""
        return cls(offset, _checksum(file, offset), os.fstat(file.fileno()).st_ino)

    def matches(self, file: IO[bytes]) -> bool:
        """Return whether an open file has the same bytes before the offset."""
        status = os.fstat(file.fileno())
        if status.st_size < self.offset:
            return False
        if self.offset and self.checksum:
            return _checksum(file, self.offset) == self.checksum
        return self.inode in (0, status.st_ino)


def _checksum(file: IO[bytes], offset: int) -> str:
    start = max(0, offset - CHECKSUM_BYTES)
    data = os.pread(file.fileno(), offset - start, start)
    return hashlib.sha256(data).hexdigest()


def open_log(path: Path) -> IO[bytes]:
    """Open a regular file without blocking; raise OSError for anything else.

    Opening a pipe would wait for its writer, and a device is not a log.
    """
    file = open(path, "rb", buffering=0, opener=_open_nonblocking)  # noqa: SIM115 -- returned
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def log_files(path: Path) -> list[Path]:
    """Return the log and its rotated, uncompressed predecessors, oldest first."""
    names = re.compile(re.escape(path.name) + _ROTATED_SUFFIX)
    found = []
    for entry in path.parent.iterdir():
        if entry == path or names.fullmatch(entry.name):
            with contextlib.suppress(OSError):
                status = entry.stat()
                if stat.S_ISREG(status.st_mode):
                    found.append((entry == path, status.st_mtime, entry))
    return [entry for _, _, entry in sorted(found)]


def find_file(position: Position, files: list[Path]) -> Path | None:
    """Return the newest file that matches a position, or None.

    Raises OSError if no file matches and one could not be opened.
    """
    last_error = None
    for path in reversed(files):
        try:
            with open_log(path) as file:
                if position.matches(file):
                    return path
        except OSError as error:
            last_error = error
    if last_error:
        raise last_error
    return None


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write a state file atomically; create its folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "w", opener=_open_private) as file:
        json.dump({"format": FORMAT, **state}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load_state(path: Path) -> dict[str, Any] | None:
    """Return the saved state, or None if there is none.

    Raises OSError if it is unreadable, ValueError if it is invalid.
    """
    try:
        state = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        message = f"{path} is not in format {FORMAT}"
        raise ValueError(message)
    return state


def set_aside_state(path: Path) -> Path:
    """Rename an unusable state file, so that it is not overwritten."""
    aside = path.with_name(path.name + ".unusable")
    with contextlib.suppress(OSError):
        path.replace(aside)
    return aside


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _open_nonblocking(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)

"""Where in which file reading stopped, so that a restart reads on from there.

A file is known by the bytes before the position, not by its name or inode alone:
that holds through rename, copy-truncate and re-creation. Only where no byte was read
does the inode decide.
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

PROBE_BYTES = 1024
FORMAT = 1
_ROTATED = r"[-.](\d[\d-]*|old|bak|prev)"
"""What logrotate and people append to the name of a log."""


@dataclass(frozen=True)
class Position:
    """An offset, the checksum of up to PROBE_BYTES before it, and the file's inode.

    Without a checksum, or at offset 0, the inode must be the same; 0 is any.
    """

    offset: int
    probe: str
    inode: int = 0

    @classmethod
    def at(cls, file: IO[bytes], offset: int) -> Position:
        """Return the position at an offset of an open file."""
        return cls(offset, _probe(file, offset), os.fstat(file.fileno()).st_ino)

    def fits(self, file: IO[bytes]) -> bool:
        """Tell whether an open file has this position's bytes before its offset."""
        status = os.fstat(file.fileno())
        if status.st_size < self.offset:
            return False
        if self.offset and self.probe:
            return _probe(file, self.offset) == self.probe
        return self.inode in (0, status.st_ino)


def _probe(file: IO[bytes], offset: int) -> str:
    """Return the checksum of the bytes before an offset."""
    start = max(0, offset - PROBE_BYTES)
    data = os.pread(file.fileno(), offset - start, start)
    return hashlib.sha256(data).hexdigest()


def open_log(path: Path) -> IO[bytes]:
    """Open a regular file; raise OSError for anything else, without waiting.

    A pipe would wait for its writer, and a device has nothing to tell.
    """
    file = open(path, "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115 -- returned
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def siblings(path: Path) -> list[Path]:
    """Return the log and its rotated, uncompressed predecessors, oldest first."""
    names = re.compile(re.escape(path.name) + _ROTATED)
    found = []
    for entry in path.parent.iterdir():
        if entry == path or names.fullmatch(entry.name):
            with contextlib.suppress(OSError):
                status = entry.stat()
                if stat.S_ISREG(status.st_mode):
                    found.append((entry == path, status.st_mtime, entry))
    return [entry for _, _, entry in sorted(found)]


def find(position: Position, files: list[Path]) -> Path | None:
    """Return the newest file that has a position; None if no file has it.

    Raises OSError if none has it of those that can be opened.
    """
    problem = None
    for path in reversed(files):
        try:
            with open_log(path) as file:
                if position.fits(file):
                    return path
        except OSError as error:
            problem = error
    if problem:
        raise problem
    return None


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a state file whole or not at all; make its folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "w", opener=_private) as file:
        json.dump({"format": FORMAT, **state}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load(path: Path) -> dict[str, Any] | None:
    """Return the saved state, or None when there is none.

    Raises OSError when it cannot be read, ValueError when it makes no sense.
    """
    try:
        state = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        message = f"{path} is not in format {FORMAT}"
        raise ValueError(message)
    return state


def set_aside(path: Path) -> Path:
    """Rename a state file that cannot be used, so that it is not written over."""
    aside = path.with_name(path.name + ".unusable")
    with contextlib.suppress(OSError):
        path.replace(aside)
    return aside


def _private(name: str, flags: int) -> int:
    """Open a file for its owner alone."""
    return os.open(name, flags, 0o600)


def _without_waiting(name: str, flags: int) -> int:
    """Open a file without waiting for another process."""
    return os.open(name, flags | os.O_NONBLOCK)

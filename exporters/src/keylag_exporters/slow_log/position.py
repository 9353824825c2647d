"""Where in which file reading stopped, so that a restart reads on from there.

A file is known by the bytes before the position, not by its name or inode alone:
that holds through rename, copy-truncate and re-creation.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
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
    """An offset and the checksum of up to PROBE_BYTES before it."""

    offset: int
    probe: str

    @classmethod
    def at(cls, file: IO[bytes], offset: int) -> Position:
        """Return the position at an offset of an open file."""
        return cls(offset, _probe(file, offset))

    def fits(self, file: IO[bytes]) -> bool:
        """Tell whether an open file has this position's bytes before its offset."""
        if os.fstat(file.fileno()).st_size < self.offset:
            return False
        return _probe(file, self.offset) == self.probe


def _probe(file: IO[bytes], offset: int) -> str:
    """Return the checksum of the bytes before an offset."""
    start = max(0, offset - PROBE_BYTES)
    data = os.pread(file.fileno(), offset - start, start)
    return hashlib.sha256(data).hexdigest()


def siblings(path: Path) -> list[Path]:
    """Return the log and its rotated, uncompressed predecessors, oldest first."""
    names = re.compile(re.escape(path.name) + _ROTATED)
    found = []
    for entry in path.parent.iterdir():
        if entry == path or names.fullmatch(entry.name):
            with contextlib.suppress(OSError):
                found.append((entry == path, entry.stat().st_mtime, entry))
    return [entry for _, _, entry in sorted(found)]


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a state file whole or not at all."""
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "w", opener=_private) as file:
        json.dump({"format": FORMAT, **state}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load(path: Path) -> dict[str, Any] | None:
    """Return the saved state, or None when there is none that can be used."""
    try:
        state = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    usable = isinstance(state, dict) and state.get("format") == FORMAT
    return state if usable else None


def _private(name: str, flags: int) -> int:
    """Open a file for its owner alone."""
    return os.open(name, flags, 0o600)

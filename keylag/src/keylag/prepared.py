"""Prepared data: a stack's data folder, kept after the slow first steps.

Creating Keystone's tables and filling them takes far longer than copying the
result.  A copy is named by a digest of everything that it depends on.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from keylag.errors import KeylagError
from keylag.state import CHECKOUT, DEPLOY, locked, moved_in
from keylag.tools import Tools

if TYPE_CHECKING:
    from keylag.stack import Stack

CODE = Path(__file__).parent / "services"
DEPENDS_ON = (
    *(CHECKOUT / "locks" / name for name in ("keystone.txt", "keystone-2026.1.txt")),
    DEPLOY / "keystone" / "keystone.conf",
    DEPLOY / "keystone" / "setup.sh",
    DEPLOY / "mysql" / "accounts.sql",
    DEPLOY / "mysql" / "keylag.cnf",
    CODE / "keystone.py",
    CODE / "mariadb.py",
)
"""Files that decide what the data folder of a bare stack holds."""
KEPT = 8
"""Copies kept, the most recently used ones; one takes about 50 MB."""
KEY_FILE = "key"
NOT_COPIED = shutil.ignore_patterns("ibtmp1", "*.pid", "*.sock")


@dataclass(frozen=True)
class Prepared:
    """What to fill a new stack with, so that it is done once and then copied.

    `key` says what `fill` does: change it whenever the filling changes.  `fill` is
    given a stack that is up, and must not start, stop or restart it.
    """

    key: str
    fill: Callable[["Stack"], None]


class CopyError(KeylagError):
    """Prepared data could not be copied; the text says why and what to do."""


def _leave_bare(_: "Stack") -> None:
    """Fill with nothing."""


BARE = Prepared("", _leave_bare)
"""A Keystone as `keystone-manage bootstrap` leaves it."""


def digest(key: str, tools: Tools) -> str:
    """Return the name of the data that was filled as `key` says.

    Its first half stands for everything else that the data depends on.
    """
    server = tools.mariadbd
    status = server.stat()
    # The user too: the database lets in root over the socket by the owner's name.
    text = f"{server} {status.st_size} {status.st_mtime_ns} {os.getuid()}"
    # And which Keystone made the tables.
    text += f" {tools.keystone.name}"
    base = hashlib.sha256(text.encode())
    for path in DEPENDS_ON:
        base.update(path.read_bytes())
    filling = hashlib.sha256(key.encode())
    return f"{base.hexdigest()[:12]}-{filling.hexdigest()[:12]}"


def holds(data: Path, name: str, *, however_filled: bool = False) -> bool:
    """Tell whether a data folder is whole and is what `name` says."""
    key = data / KEY_FILE
    if not key.exists():
        return False
    found = key.read_text()
    if however_filled:
        return found.partition("-")[0] == name.partition("-")[0]
    return found == name


def mark_whole(data: Path, name: str) -> None:
    """Write down that a data folder is whole, and how it was made."""
    (data / KEY_FILE).write_text(name)


@dataclass(frozen=True)
class Store:
    """The prepared copies of one state folder."""

    folder: Path

    def locked(self) -> AbstractContextManager[None]:
        """Keep others from making the same copy; they wait and then use it."""
        return locked(self.folder / ".lock")

    def restore(self, name: str, data: Path) -> bool:
        """Make `data` a copy of what is kept; False if there is none."""
        kept = self.folder / name
        if not holds(kept, name):
            return False
        os.utime(kept)
        with moved_in(data) as scratch:
            _copy(kept, scratch)
        return True

    def save(self, name: str, data: Path) -> None:
        """Keep a copy of `data`, whose servers are stopped."""
        with moved_in(self.folder / name) as scratch:
            _copy(data, scratch)
        copies = [path for path in self.folder.iterdir() if path.is_dir()]
        by_age = sorted(copies, key=lambda path: path.stat().st_mtime, reverse=True)
        for old in by_age[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=NOT_COPIED)
    except shutil.Error as error:
        # It has all the files that failed; one says enough.
        _, _, why = error.args[0][0]
        message = (
            f"The stack's data could not be copied to {target}: {why}. "
            "Make room there, or choose another folder with --state."
        )
        raise CopyError(message) from error
    target.chmod(0o700)

"""Caches the data folders of stacks: a copy is much faster than a new database.

The name of a copy is a digest of all inputs that determine its contents.
"""

import hashlib
import os
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from keylag.errors import KeylagError
from keylag.paths import DATA, DEPLOY
from keylag.state import locked, replace_folder
from keylag.tools import Tools

SERVICES_FOLDER = Path(__file__).parent / "services"
INPUT_FILES = (
    *(DATA / "locks" / name for name in ("keystone.txt", "keystone-2026.1.txt")),
    DEPLOY / "keystone" / "keystone.conf",
    DEPLOY / "keystone" / "setup.sh",
    DEPLOY / "mysql" / "accounts.sql",
    DEPLOY / "mysql" / "keylag.cnf",
    SERVICES_FOLDER / "keystone.py",
    SERVICES_FOLDER / "mariadb.py",
)
"""Files that determine the contents of a data folder, beside `InitialData`."""
MAX_COPIES = 8
"""Most recently used copies that the cache keeps; each takes about 50 MB."""
KEY_FILE = "key"
IGNORED_FILES = shutil.ignore_patterns("ibtmp1", "*.pid", "*.sock")


class DatadirCopyError(KeylagError):
    """A data folder could not be copied."""


def cache_key(key: str, tools: Tools) -> str:
    """Return the name of a data folder with the `InitialData` of this key.

    The first half is a digest of all other inputs.  Raises OSError for a missing file.
    """
    server = tools.mariadbd
    status = server.stat()
    # The database authenticates its administrator by the name of the folder's owner.
    text = f"{server} {status.st_size} {status.st_mtime_ns} {os.getuid()}"
    # The release of Keystone determines the tables.
    text += f" {tools.keystone.name}"
    base = hashlib.sha256(text.encode())
    for path in INPUT_FILES:
        base.update(path.read_bytes())
    initial = hashlib.sha256(key.encode())
    return f"{base.hexdigest()[:12]}-{initial.hexdigest()[:12]}"


def is_complete(data: Path, name: str, *, any_initial_data: bool = False) -> bool:
    """Return whether a data folder is complete and has this name.

    With `any_initial_data` its initial data may differ.
    """
    key = data / KEY_FILE
    if not key.exists():
        return False
    found = key.read_text()
    if any_initial_data:
        return found.partition("-")[0] == name.partition("-")[0]
    return found == name


def mark_complete(data: Path, name: str) -> None:
    """Mark a data folder as complete, under its name."""
    (data / KEY_FILE).write_text(name)


@dataclass(frozen=True)
class DatadirCache:
    """Copies of data folders, below `folder`."""

    folder: Path

    def locked(self) -> AbstractContextManager[None]:
        """Return a lock: other processes wait instead of making the same data."""
        return locked(self.folder / ".lock")

    def restore(self, name: str, data: Path) -> bool:
        """Replace `data` with the copy of this name; returns False if there is none.

        Raises DatadirCopyError.
        """
        copy = self.folder / name
        if not is_complete(copy, name):
            return False
        os.utime(copy)
        with replace_folder(data) as scratch:
            _copy_datadir(copy, scratch)
        return True

    def save(self, name: str, data: Path) -> None:
        """Add a copy of `data` while its servers are stopped; evicts old copies.

        Raises DatadirCopyError.
        """
        with replace_folder(self.folder / name) as scratch:
            _copy_datadir(data, scratch)
        copies = [path for path in self.folder.iterdir() if path.is_dir()]
        by_age = sorted(copies, key=lambda path: path.stat().st_mtime, reverse=True)
        for old in by_age[MAX_COPIES:]:
            shutil.rmtree(old, ignore_errors=True)


def _copy_datadir(source: Path, target: Path) -> None:
    try:
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=IGNORED_FILES)
    except shutil.Error as error:
        # The error lists all files that failed; the first one is enough.
        _, _, reason = error.args[0][0]
        message = (
            f"The stack's data could not be copied to {target}: {reason}. "
            "Free some space there, or choose another folder with --state."
        )
        raise DatadirCopyError(message) from error
    target.chmod(0o700)

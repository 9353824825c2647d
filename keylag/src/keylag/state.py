"""The state folder, and atomic ways to write files and folders."""

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keylag.errors import WrongUsageError
from keylag.paths import CHECKOUT, INSTALLED

UNSAFE_CHARACTERS = " \t\n\"'$%\\:#&;<>()|*?![]{}^`"
"""Characters that some program of the stack rejects; setup.sh has the same list."""


class PathError(WrongUsageError):
    """A path contains a character that some program of the stack rejects."""


def check_path(path: Path) -> Path:
    """Return the path if all programs of the stack accept it; else raise PathError."""
    found = [
        one for one in str(path) if one in UNSAFE_CHARACTERS or not one.isprintable()
    ]
    if found:
        message = (
            f"The path {str(path)!r} contains {found[0]!r}, which MariaDB, Keystone "
            "or uWSGI reject. Choose a path of letters, digits, / . _ - + @ = and "
            "commas, for the checkout and for the stack's folder."
        )
        raise PathError(message)
    return path


def state_folder() -> Path:
    """Return the state folder: `$KEYLAG_STATE`, or `.keylag`.

    That is in the checkout, or without one in the working directory.
    """
    chosen = os.environ.get("KEYLAG_STATE")
    if chosen:
        return Path(chosen).expanduser().resolve()
    return (Path.cwd() if INSTALLED else CHECKOUT) / ".keylag"


def default_stack_folder() -> Path:
    """Return the folder of the stack that `keylag up` starts."""
    return state_folder() / "stack"


@contextmanager
def locked(path: Path, waiting: str = "") -> Iterator[None]:
    """Hold a lock file exclusively; waits while another process holds it.

    Prints `waiting` before it waits.  The system releases the lock when the process
    ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                print(waiting, file=sys.stderr)  # noqa: T201
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def replace_folder(target: Path) -> Iterator[Path]:
    """Yield a scratch folder that replaces `target` if the `with` body succeeds.

    `target` is the old folder, for a moment none, then the new one.  The next call
    removes a scratch folder that an interrupted process left.
    """
    scratch = target.with_name(f".making-{target.name}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        yield scratch
        shutil.rmtree(target, ignore_errors=True)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _name_in_errors(path: Path) -> Iterator[None]:
    """Add the path to an OSError without one, as on closing a file on a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def _replace_file(path: Path) -> Iterator[Path]:
    """Yield the path of a scratch file that replaces `path` if the body succeeds.

    Raises the body's OSError with the path.
    """
    scratch = path.with_name(f".{path.name}.new")
    try:
        with _name_in_errors(path):
            yield scratch
            scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def write_output(path: Path, text: str) -> None:
    """Write a file atomically, and create its folder.

    Devices and pipes are written directly.  Raises OSError with the path.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        with _name_in_errors(path):
            path.write_text(text, encoding="utf-8")
        return
    with _replace_file(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def write_private(path: Path, text: str) -> None:
    """Write a file with mode 0600 atomically; raises OSError."""
    with _replace_file(path) as scratch:
        scratch.unlink(missing_ok=True)
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())

"""Where this checkout keeps what it makes: one folder, which may simply be deleted."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from keylag.errors import WrongUsageError

CHECKOUT = Path(__file__).resolve().parents[3]
"""The checkout this package was installed from (editable)."""

DEPLOY = CHECKOUT / "deploy"
"""Configuration that the native stack and the containers share."""


UNSAFE = " \t\n\"'$%\\:#&;<>()|*?![]{}^`"
"""What some program of the stack does not take in a path; setup.sh has the same."""


class PathError(WrongUsageError):
    """A path has a character that some program of the stack does not take."""


def check_path(path: Path) -> Path:
    """Return a path that all programs of the stack can use; raises PathError."""
    found = [one for one in str(path) if one in UNSAFE or not one.isprintable()]
    if found:
        message = (
            f"The path {str(path)!r} has {found[0]!r} in it, which MariaDB, Keystone "
            "or uWSGI cannot use. Choose a path of letters, digits, / . _ - + @ = and "
            "commas, for the checkout and for the folder of the stack."
        )
        raise PathError(message)
    return path


def state_folder() -> Path:
    """Return the state folder: `$KEYLAG_STATE`, or `.keylag` in the checkout."""
    chosen = os.environ.get("KEYLAG_STATE")
    return Path(chosen).expanduser().resolve() if chosen else CHECKOUT / ".keylag"


def default_stack_folder() -> Path:
    """Return the folder of the stack that `keylag up` starts."""
    return state_folder() / "stack"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold `path` as a lock among processes; waits as long as another one has it.

    The lock goes with the process, so a killed one leaves nothing behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def moved_in(target: Path) -> Iterator[Path]:
    """Give a scratch folder that becomes `target` if the `with` body succeeds.

    `target` is never seen half made: it is what it was, or whole.  What an
    interrupted run left beside it is removed by the next one.
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


def write_output(path: Path, text: str) -> None:
    """Write a file for a reader, whole or not at all, and its folder.

    A device or a pipe is written to as it is.  Raises OSError, which names the path.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    is_special = path.exists() and not path.is_file()
    scratch = path if is_special else path.with_name(f".{path.name}.new")
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        # A full disk is noticed where the name is not known any more.
        error.filename = error.filename or str(path)
        if not is_special:
            scratch.unlink(missing_ok=True)
        raise


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    scratch = path.with_name(f".{path.name}.new")
    with suppress(FileNotFoundError):
        scratch.unlink()
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(path)

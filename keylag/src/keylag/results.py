"""Result folders: one for each run, and a link to the latest.

    with results.folder(None, "load", "token-issue") as out: ...

creates out/load/token-issue/2026-11-22T10-05-00Z below the working directory, and
the link out/load/token-issue/latest.  Results are never overwritten.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Final

from keylag.errors import KeylagError

OUT: Final = Path("out")
LATEST: Final = "latest"


class ResultsError(KeylagError):
    """Results cannot be written to a folder."""


@contextmanager
def folder(chosen: Path | None, *kind: str) -> Iterator[Path]:
    """Yield an empty folder: `chosen`, or a new one below out/KIND.

    If the `with` body succeeds, `latest` links to the new folder.  A folder that stays
    empty is removed.  Raises ResultsError before the body runs.
    """
    try:
        out = (
            _require_empty(chosen)
            if chosen
            else _create_run_folder(OUT.joinpath(*kind))
        )
    except OSError as error:
        message = (
            f"Results cannot be written to {error.filename}: {error.strerror}. "
            "Choose another folder with --out."
        )
        raise ResultsError(message) from error
    try:
        yield out
        if not chosen:
            _link_latest(out)
    finally:
        with suppress(OSError):
            out.rmdir()


def runs(holds: str, *kind: str) -> list[Path]:
    """Return the folders of a kind that contain the file `holds`, sorted by path."""
    found = OUT.joinpath(*kind).glob(f"*/*/{holds}")
    return sorted(path.parent for path in found if not path.parent.is_symlink())


def _require_empty(chosen: Path) -> Path:
    chosen.mkdir(parents=True, exist_ok=True)
    if any(chosen.iterdir()):
        message = (
            f"{chosen} is not empty, and Keylag does not overwrite results. "
            "Choose another folder with --out."
        )
        raise ResultsError(message)
    return chosen


def _create_run_folder(parent: Path) -> Path:
    started = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
    parent.mkdir(parents=True, exist_ok=True)
    names = chain([started], (f"{started}-{number}" for number in count(2)))
    return next(out for name in names if _create(out := parent / name))


def _create(folder: Path) -> bool:
    # Runs that start in the same second compete for a name.
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def _link_latest(out: Path) -> None:
    # A file system without links has no `latest`.
    scratch = out.with_name(f".{LATEST}-{out.name}")
    with suppress(OSError):
        scratch.symlink_to(out.name)
        scratch.replace(out.with_name(LATEST))
    scratch.unlink(missing_ok=True)

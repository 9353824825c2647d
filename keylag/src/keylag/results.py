"""Folders of results: one for each run, and a link to the latest.

    with results.folder(None, "load", "token-issue") as out: ...

leaves out/load/token-issue/2026-11-22T10-05-00Z below the working directory, and
out/load/token-issue/latest, which leads to it.  Nothing is ever overwritten.
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
    """Results cannot be left there; the text says why and what to do."""


@contextmanager
def folder(chosen: Path | None, *kind: str) -> Iterator[Path]:
    """Give an empty folder: `chosen`, or one of this run's own below out/KIND.

    `latest` leads to a run whose `with` body succeeds: what it names is whole.  A
    folder that stays empty is removed.  Raises ResultsError, before the body runs.
    """
    try:
        out = _empty(chosen) if chosen else _new(OUT.joinpath(*kind))
    except OSError as error:
        message = (
            f"Results cannot be left in {error.filename}: {error.strerror}. "
            "Choose another folder with --out."
        )
        raise ResultsError(message) from error
    try:
        yield out
        if not chosen:
            _link(out)
    finally:
        with suppress(OSError):
            out.rmdir()


def runs(holds: str, *kind: str) -> list[Path]:
    """Return the folders of a kind that hold a certain file, by path."""
    found = OUT.joinpath(*kind).glob(f"*/*/{holds}")
    return sorted(path.parent for path in found if not path.parent.is_symlink())


def _empty(chosen: Path) -> Path:
    chosen.mkdir(parents=True, exist_ok=True)
    if any(chosen.iterdir()):
        message = (
            f"{chosen} is not empty, and results are never overwritten. "
            "Choose another --out."
        )
        raise ResultsError(message)
    return chosen


def _new(parent: Path) -> Path:
    began = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
    parent.mkdir(parents=True, exist_ok=True)
    names = chain([began], (f"{began}-{number}" for number in count(2)))
    return next(out for name in names if _made(out := parent / name))


def _made(folder: Path) -> bool:
    """Make a folder; False if there is one, be it of a run that begins just now."""
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def _link(out: Path) -> None:
    """Have `latest` lead to a folder; a file system without links goes without."""
    scratch = out.with_name(f".{LATEST}-{out.name}")
    with suppress(OSError):
        scratch.symlink_to(out.name)
        scratch.replace(out.with_name(LATEST))
    scratch.unlink(missing_ok=True)

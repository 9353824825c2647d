"""Stop a stack; needs nothing but the mark that its processes carry."""

import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from keylag import processes
from keylag.services import SERVICES
from keylag.services.base import Service, run_folder
from keylag.state import locked


def stop_stack(folder: Path, services: Sequence[Service] = SERVICES) -> list[str]:
    """Stop every process of a stack; returns the names of what ran.

    Its data and logs stay.  The folder itself may be gone already.
    """
    folder = folder.resolve()
    with _lock_of(folder):
        found = processes.find(stack=folder)
        stop_found(folder, services)
        # Helpers, and services that this version does not know.
        processes.stop(processes.find(stack=folder))
        shutil.rmtree(run_folder(folder), ignore_errors=True)
    return sorted({mark.service for mark in found})


def stop_found(folder: Path, services: Sequence[Service]) -> None:
    """Stop the services given, in the reverse of the order they start."""
    for service in reversed(services):
        found = processes.find(stack=folder)
        processes.stop([mark for mark in found if mark.service == service.name])


def stop_below(folder: Path, *, deep: bool) -> dict[Path, list[str]]:
    """Stop the stacks in a folder, or those of its folders too; returns what ran."""
    folder = folder.resolve()
    found = {mark.stack for mark in processes.find(below=folder)}
    chosen = [stack for stack in sorted(found) if deep or stack.parent == folder]
    return {stack: stop_stack(stack) for stack in chosen}


def _lock_of(folder: Path) -> AbstractContextManager[None]:
    return locked(folder / ".lock") if folder.is_dir() else nullcontext()

"""Stops stacks; finds their processes by the variables in their environment."""

import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from keylag import processes
from keylag.services import SERVICES
from keylag.services.base import Service, socket_folder
from keylag.state import locked


def stop_stack(folder: Path, services: Sequence[Service] = SERVICES) -> list[str]:
    """Stop every process of a stack; returns the names of the stopped services.

    Data and logs stay.  The folder need not exist any more.
    """
    folder = folder.resolve()
    with _stack_lock(folder):
        found = processes.find_processes(stack=folder)
        stop_services(folder, services)
        # Helper commands, and services of other versions of Keylag.
        processes.stop_processes(processes.find_processes(stack=folder))
        shutil.rmtree(socket_folder(folder), ignore_errors=True)
    return sorted({one.service for one in found})


def stop_services(folder: Path, services: Sequence[Service]) -> None:
    """Stop the given services in reverse order."""
    for service in reversed(services):
        found = processes.find_processes(stack=folder, service=service.name)
        processes.stop_processes(found)


def stop_stacks_in(folder: Path, *, recursive: bool) -> dict[Path, list[str]]:
    """Stop the stacks in a folder, or `recursive` in all folders below it.

    Returns the names of the stopped services by the folder of their stack.
    """
    folder = folder.resolve()
    found = {one.stack for one in processes.find_processes(below=folder)}
    chosen = [stack for stack in sorted(found) if recursive or stack.parent == folder]
    return {stack: stop_stack(stack) for stack in chosen}


def _stack_lock(folder: Path) -> AbstractContextManager[None]:
    return locked(folder / ".lock") if folder.is_dir() else nullcontext()

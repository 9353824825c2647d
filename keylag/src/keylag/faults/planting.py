"""Plants faults in stacks, and takes them back from the journal."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pymysql
from rich.console import Console

from keylag.faults.changes.front import RelayInFront
from keylag.faults.changes.helper import Helper
from keylag.faults.journal import Journal, PlantedFault
from keylag.faults.model import Fault, FaultError, FaultUsageError
from keylag.faults.registry import FAULTS
from keylag.faults.site import Site
from keylag.stack import Stack
from keylag.stack_info import StackInfo
from keylag.stack_shutdown import stop_stack
from keylag.state import locked
from keylag.suggestions import did_you_mean

LOCK: Final = ".faults.lock"


def find_fault(key: str) -> Fault:
    """Return the fault of C2:stopped, C2 or its name; raises FaultUsageError."""
    known: dict[str, Fault] = {}
    for fault in FAULTS.values():
        for name in (fault.key, fault.id, fault.name, f"{fault.name}:{fault.variant}"):
            known.setdefault(name.lower(), fault)
    found = known.get(key.lower())
    if found is None:
        hint = did_you_mean(key, [*FAULTS, *(one.name for one in FAULTS.values())])
        message = f"There is no fault {key}.{hint} `keylag fault list` lists them."
        raise FaultUsageError(message)
    return found


def helpers(planted: PlantedFault) -> Iterator[Helper]:
    """Return the processes that a fault has, if none has ended."""
    for entry in planted.entries:
        change = entry.change()
        if isinstance(change, Helper):
            yield change
        elif isinstance(change, RelayInFront):
            yield change.helper


def check(site: Site, fault: Fault) -> None:
    """Raise FaultUsageError if the fault cannot be planted beside the others."""
    for planted in site.journal.planted:
        other = FAULTS[planted.key]
        if other is fault:
            message = (
                f"{fault.title} is planted. Take it back with `keylag fault stop`."
            )
            raise FaultUsageError(message)
        if shared := sorted(fault.uses & other.uses):
            message = (
                f"{fault.title} conflicts with {other.title}: both change "
                f"{' and '.join(shared)}. Take that back first: "
                f"`keylag fault stop {other.key}`."
            )
            raise FaultUsageError(message)
    for need in fault.needs:
        if not need.met(site.options):
            message = f"{fault.title} has no effect on this stack. {need.advice}"
            raise FaultUsageError(message)
    for key, strength in fault.beside.items():
        if site.journal.find(key) is None:
            message = (
                f"{fault.title} has no effect without {FAULTS[key].title}. Plant that "
                f"first: `keylag fault start {key} --strength {strength:g}`."
            )
            raise FaultUsageError(message)


def plant(site: Site, fault: Fault, strength: float | None = None) -> None:
    """Plant a fault; if that fails or is interrupted, it is taken back.

    Raises FaultUsageError as `check` does, FaultError and StackError.
    """
    strength = fault.strength.check(
        fault.strength.default if strength is None else strength
    )
    with locked(site.folder / LOCK):
        site.journal = Journal(site.folder)
        check(site, fault)
        if site.journal.base is None:
            site.journal.base = site.options
        planted = site.journal.begin(fault, strength, time.time())
        try:
            for change in fault.changes(site, strength):
                site.journal.add(planted, change)
                change.apply(site)
            planted.complete = True
            site.journal.save()
        except BaseException as error:
            _take_back(site, fault.key)
            _repair(site)
            if isinstance(error, pymysql.Error):
                message = f"{fault.title} was taken back. The database said: {error}"
                raise FaultError(message) from error
            raise


def take_back(site: Site, key: str | None = None) -> list[str]:
    """Take back one fault, or all in reverse order; return their keys.

    A stack of which nothing runs stays stopped.
    """
    if not site.journal.path.exists():
        return []
    with locked(site.folder / LOCK):
        site.journal = Journal(site.folder)
        running = any(one.pid for one in StackInfo(site.folder).status())
        site.restarts = site.restarts and running
        keys = [one.key for one in reversed(site.journal.planted)]
        chosen = [one for one in keys if key in {None, one}]
        for one in chosen:
            _take_back(site, one)
        if chosen and site.restarts:
            _repair(site)
        elif chosen and not running:
            # Taking back statements may have started the database.
            stop_stack(site.folder)
        return chosen


def _take_back(site: Site, key: str) -> None:
    planted = site.journal.find(key)
    if planted is None:
        return
    while planted.entries:
        entry = planted.entries[-1]
        entry.undoing = True
        site.journal.save()
        try:
            entry.change().undo(site)
        except pymysql.Error as error:
            message = (
                f"{key} is not taken back: the database said {error}. "
                "Run the command again."
            )
            raise FaultError(message) from error
        planted.entries.pop()
        site.journal.save()
    site.journal.planted.remove(planted)
    site.journal.save()


def _repair(site: Site) -> None:
    """Start a stack whose restart was interrupted, once it has no faults."""
    if not site.journal.planted and not site.stack.is_up():
        # The data stays, whatever version of Keylag made it.
        site.stack.restart(*(service.name for service in site.stack.services))


def take_back_before_stop(folder: Path) -> list[str]:
    """Take back all faults of a stack that is about to stop; return their keys."""
    site = Site(folder, Console(quiet=True))
    site.restarts = False
    return take_back(site)


@contextmanager
def planted(
    stack: Stack, fault: Fault, strength: float | None = None
) -> Iterator[Site]:
    """Plant a fault, and those that it needs beside it, while the `with` body runs."""
    site = Site(stack.folder, Console(quiet=True), stack)
    with ExitStack() as others:
        for key, value in fault.beside.items():
            if site.journal.find(key) is None:
                others.enter_context(planted(stack, FAULTS[key], value))
        plant(site, fault, strength)
        try:
            yield site
        finally:
            take_back(site, fault.key)

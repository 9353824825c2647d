"""Delays planted below a seam, in the host library that the seam wraps."""

from __future__ import annotations

import functools
import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Cell = tuple[str, str]

SLEEP_SECONDS = 0.12
PAIRS = 6


@dataclass(frozen=True)
class Place:
    """Where to sleep, in which call, and the cell that has to show it.

    `target` is ``module:path``, or ``statement:text`` for the database itself;
    `within` is the name of a function that must be running, if given.
    """

    name: str
    target: str
    call: str
    cell: Cell
    within: str = ""


@dataclass(frozen=True)
class Row:
    """What calls with the delay took more than calls without; seconds.

    Other work on the machine only ever adds time, so the least of several calls
    are compared.
    """

    place: Place
    planted: float
    seen: float
    elsewhere: float
    waited: float


class Delay:
    """Sleeps once in each call that it is armed for."""

    def __init__(self, within: str) -> None:
        self._within = within
        self._armed = False
        self._slept = 0.0

    def arm(self) -> None:
        self._armed = True
        self._slept = 0.0

    def disarm(self) -> float:
        """Sleep no more; return the seconds slept."""
        self._armed = False
        return self._slept

    def perhaps(self) -> None:
        if self._armed and (not self._within or _is_running(self._within)):
            self._armed = False
            moment = time.perf_counter()
            time.sleep(SLEEP_SECONDS)
            self._slept = time.perf_counter() - moment


def _is_running(name: str) -> bool:
    """Return whether a function of this name is on the stack."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == name:
            return True
    return False


def plant(place: Place) -> Delay:
    """Put the place's delay into this process, where it stays unarmed."""
    delay = Delay(place.within)
    module, _, path = place.target.partition(":")
    if module == "statement":
        _plant_statement(path, delay)
    else:
        _plant_call(module, path, delay)
    return delay


def _plant_call(module: str, path: str, delay: Delay) -> None:
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    raw = vars(owner)[name]
    call = getattr(raw, "__func__", raw)

    @functools.wraps(call)
    def slowed(*args: Any, **kwargs: Any) -> Any:
        delay.perhaps()
        return call(*args, **kwargs)

    descriptor = isinstance(raw, (staticmethod, classmethod))
    setattr(owner, name, type(raw)(slowed) if descriptor else slowed)


def _plant_statement(text: str, delay: Delay) -> None:
    """Sleep inside SQLite while it runs a statement that holds this text."""
    from sqlalchemy import event
    from sqlalchemy.pool import Pool

    def trace(statement: str) -> None:
        if text in statement:
            delay.perhaps()

    def connected(connection: Any, _record: Any) -> None:
        connection.set_trace_callback(trace)

    event.listen(Pool, "connect", connected)


def measure(place: Place, call: Callable[..., Any]) -> Row:
    """Make the call with and without the delay in turn, and compare them."""
    delay = plant(place)
    call()
    without, with_it = [], []
    for _ in range(PAIRS):
        without.append(_times(call(), place.cell, 0.0))
        reply = call(delay.arm)
        with_it.append(_times(reply, place.cell, delay.disarm()))
    planted, *least = (min(column) for column in zip(*with_it))
    _, *usual = (min(column) for column in zip(*without))
    seen, elsewhere, waited = (a - b for a, b in zip(least, usual))
    return Row(place, planted, planted + seen, elsewhere, planted + waited)


def _times(reply: Any, cell: Cell, planted: float) -> tuple[float, ...]:
    """Return what was planted, then the rest in the cell, elsewhere, and waited."""
    inside = reply.booked.cells.get(cell, 0.0)
    elsewhere = reply.booked.wall - inside
    return planted, inside - planted, elsewhere, reply.waited - planted


def table(rows: list[Row]) -> list[str]:
    """Return the lines of the table that a reader is shown."""
    head = f"{'place':<22}{'phase.operation':<34}{'planted':>9}{'seen':>9}{'else':>9}"
    return [f"{head}  milliseconds, {PAIRS} calls each"] + [
        f"{row.place.name:<22}{'.'.join(row.place.cell):<34}"
        f"{row.planted * 1e3:>9.2f}{row.seen * 1e3:>9.2f}{row.elsewhere * 1e3:>9.2f}"
        for row in rows
    ]

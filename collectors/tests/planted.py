"""Delays planted below a seam, in the host library that the seam wraps.

Keylag's clock is given the processor time of its thread and the delays alone, so
that other work on the machine decides nothing; and as nobody else reads that
clock, a delay of a second moves it on by a second and takes no time.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keylag_otel.clock import read_with

_NS_PER_SECOND = 1e9
Cell = tuple[str, str]

DELAY_NS = 1_000_000_000
PAIRS = 4


@dataclass(frozen=True)
class Place:
    """Where to wait, in which call, and the cell that has to show it.

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

    Of each cell the least of several calls are compared.
    """

    place: Place
    planted: float
    seen: float
    elsewhere: float


class _Time:
    """The nanoseconds of all delays in this process."""

    delayed = 0


def _own_time() -> int:
    return time.thread_time_ns() + _Time.delayed


class Delay:
    """Happens once in each call that it is armed for."""

    def __init__(self, within: str) -> None:
        self._within = within
        self._armed = False
        self._happened = 0

    def arm(self) -> None:
        self._armed = True
        self._happened = 0

    def disarm(self) -> float:
        """Delay no more; return the seconds of delay."""
        self._armed = False
        return self._happened / _NS_PER_SECOND

    def perhaps(self) -> None:
        if self._armed and (not self._within or _is_running(self._within)):
            self._armed = False
            self._happened = DELAY_NS
            _Time.delayed += DELAY_NS


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
    """Wait inside SQLite while it runs a statement that holds this text."""
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
    read_with(_own_time)
    delay = plant(place)
    call()
    without, with_it, planted = [], [], []
    for _ in range(PAIRS):
        without.append(call())
        with_it.append(call(delay.arm))
        planted.append(delay.disarm())
    usual, slow = _least(without), _least(with_it)
    cells = {*usual, *slow}
    grown = {cell: slow.get(cell, 0.0) - usual.get(cell, 0.0) for cell in cells}
    seen = grown.pop(place.cell, 0.0)
    return Row(place, min(planted), seen, sum(grown.values()))


def _least(replies: list[Any]) -> dict[Cell, float]:
    """Return the least that each cell took in any of the calls."""
    cells = {cell for reply in replies for cell in reply.booked.cells}
    return {
        cell: min(reply.booked.cells.get(cell, 0.0) for reply in replies)
        for cell in cells
    }


def table(rows: list[Row]) -> list[str]:
    """Return the lines of the table that a reader is shown."""
    head = f"{'place':<22}{'phase.operation':<34}{'planted':>9}{'seen':>9}{'else':>9}"
    return [f"{head}  (milliseconds, {PAIRS} calls each)"] + [
        f"{row.place.name:<22}{'.'.join(row.place.cell):<34}"
        f"{row.planted * 1e3:>9.2f}{row.seen * 1e3:>9.2f}{row.elsewhere * 1e3:>9.2f}"
        for row in rows
    ]

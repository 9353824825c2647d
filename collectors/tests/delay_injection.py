"""Delays injected below a seam, in the host that the seam wraps.

The time source is the CPU time of the thread plus the injected delays, so other work
on the machine has no effect.  A delay advances it by a second and takes no real time.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keylag_otel.request_timer import set_time_source

_NS_PER_SECOND = 1e9
Cell = tuple[str, str]

DELAY_NS = 1_000_000_000
PAIRS = 4


@dataclass(frozen=True)
class DelayPoint:
    """A callable to delay, the request to make, and the cell that gets the delay.

    `target` is ``module:path``, or ``statement:text`` for a statement in SQLite.  With
    `within`, the delay happens only below a function of that name.
    """

    name: str
    target: str
    call: str
    cell: Cell
    within: str = ""


@dataclass(frozen=True)
class DelayEffect:
    """How many seconds longer calls with the delay took, by minimum per cell."""

    place: DelayPoint
    injected: float
    seen: float
    other_cells: float


class _Time:
    """The nanoseconds of all delays in this process."""

    delayed = 0


def _own_time() -> int:
    return time.thread_time_ns() + _Time.delayed


class Delay:
    """A delay that happens once after it is armed."""

    def __init__(self, within: str) -> None:
        self._within = within
        self._armed = False
        self._happened = 0

    def arm(self) -> None:
        self._armed = True
        self._happened = 0

    def disarm(self) -> float:
        """Disarm; return the seconds of delay."""
        self._armed = False
        return self._happened / _NS_PER_SECOND

    def delay_if_armed(self) -> None:
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


def inject(place: DelayPoint) -> Delay:
    """Install the delay in this process, unarmed."""
    delay = Delay(place.within)
    module, _, path = place.target.partition(":")
    if module == "statement":
        _inject_into_statement(path, delay)
    else:
        _inject_into_call(module, path, delay)
    return delay


def _inject_into_call(module: str, path: str, delay: Delay) -> None:
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    raw = vars(owner)[name]
    call = getattr(raw, "__func__", raw)

    @functools.wraps(call)
    def delayed_call(*args: Any, **kwargs: Any) -> Any:
        delay.delay_if_armed()
        return call(*args, **kwargs)

    descriptor = isinstance(raw, (staticmethod, classmethod))
    setattr(owner, name, type(raw)(delayed_call) if descriptor else delayed_call)


def _inject_into_statement(text: str, delay: Delay) -> None:
    """Delay SQLite while it runs a statement that contains a text."""
    from sqlalchemy import event
    from sqlalchemy.pool import Pool

    def trace(statement: str) -> None:
        if text in statement:
            delay.delay_if_armed()

    def connected(connection: Any, _record: Any) -> None:
        connection.set_trace_callback(trace)

    event.listen(Pool, "connect", connected)


def measure(place: DelayPoint, call: Callable[..., Any]) -> DelayEffect:
    """Make the call alternately with and without the delay; return the effect."""
    set_time_source(_own_time)
    delay = inject(place)
    call()
    without, with_it, injected = [], [], []
    for _ in range(PAIRS):
        without.append(call())
        with_it.append(call(delay.arm))
        injected.append(delay.disarm())
    usual, slow = _least(without), _least(with_it)
    cells = {*usual, *slow}
    grown = {cell: slow.get(cell, 0.0) - usual.get(cell, 0.0) for cell in cells}
    seen = grown.pop(place.cell, 0.0)
    return DelayEffect(place, min(injected), seen, sum(grown.values()))


def _least(replies: list[Any]) -> dict[Cell, float]:
    """Return the minimum of each cell over the calls."""
    cells = {cell for reply in replies for cell in reply.breakdown.cells}
    return {
        cell: min(reply.breakdown.cells.get(cell, 0.0) for reply in replies)
        for cell in cells
    }


def table(rows: list[DelayEffect]) -> list[str]:
    """Return the lines of a table for the terminal."""
    head = f"{'place':<22}{'phase.operation':<34}{'injected':>9}{'seen':>9}{'else':>9}"
    return [f"{head}  (milliseconds, {PAIRS} calls each)"] + [
        f"{row.place.name:<22}{'.'.join(row.place.cell):<34}"
        f"{row.injected * 1e3:>9.2f}{row.seen * 1e3:>9.2f}{row.other_cells * 1e3:>9.2f}"
        for row in rows
    ]

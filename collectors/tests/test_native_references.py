"""No operation of the C part keeps a reference that it should have given back.

As CPython's own `regrtest -R`: each operation is run many times over, and what is
counted must not grow.  A debug build of Python counts all references there are; any
other counts its memory blocks, and the references to some objects that live long.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

import native_twins as twins
import pytest
from native_twins import EXITS, HOSTILE, NO_VALUE, RAISES, RETURNS, Backend, Layer, Side

_watch = pytest.importorskip("keylag_otel._watch")

RUNS = 100
ROUNDS = 4

FAILING = {"call": RAISES, "before": RAISES, "after": RAISES, "failed": RAISES}
QUIET = dict.fromkeys(FAILING, RETURNS)
CONTEXT = dict.fromkeys(("enter", "body", "exit", "left"), RETURNS)
BACKEND = Backend()
STATUS = "200 OK"

#: Name of what is done to the operations that do it.
SCENARIOS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "clock": (
        (twins.call_clock, 0, "turn", (3, "call")),
        (twins.call_clock, 0, "note", ("name", [])),
        (twins.call_clock, 0, "tally", (7, 10**12)),
        (twins.call_clock, 0, "tally", (10**9, 1)),
    ),
    "clock, written down": (
        (twins.set_clock, 0, "writes", True),
        (twins.call_clock, 0, "turn", (3, "call")),
        (twins.call_clock, 0, "note", ("name", [])),
        (twins.call_clock, 0, "tally", (7, 2)),
    ),
    "clock, attributes": tuple(
        (twins.set_clock, 0, name, value)
        for name in twins.ATTRIBUTES
        for value in HOSTILE
    ),
    "clock, wrong arguments": tuple(
        (twins.call_clock, 0, name, (value, value))
        for name in ("turn", "count", "tally", "note")
        for value in HOSTILE
    ),
    "clock, made": (
        (twins.new_clock, "GET", 3, 2),
        (twins.new_clock, "GET", 3, 10**4),
        (twins.initialize_again, "clock", 0, ("POST", 1, 1)),
        (twins.initialize_again, "clock", 0, ("POST", None, 1)),
        (twins.begin, {"REQUEST_METHOD": "GET"}),
    ),
    "totals": (
        (twins.new_totals, (1, 2), 2),
        (twins.add_clock, "totals", 0, 0, 200),
        (twins.copy_totals, 0),
        (twins.new_totals, (1, "x"), 2),
        (twins.new_totals, None, 2),
    ),
    "sums": (
        (twins.new_sums, (1, 2), 2),
        (twins.add_clock, "sums", 0, 0, 200),
        (twins.add_clock, "sums", 0, 0, []),
        (twins.add_nonsense, "sums", 0, "clock"),
        (twins.count_in_sums, 0, 5),
        (twins.count_in_sums, 0, 10**9),
        (twins.clear_sums, 0),
    ),
    "wrapper without a request": ((twins.call_watched, (0, 1), FAILING),),
    "wrapper": (
        (twins.activate, 0),
        (twins.call_watched, (0, 1), QUIET),
        (twins.call_watched, (255, 0), FAILING),
        (twins.call_watched, (0, 1), {**QUIET, "call": EXITS}),
        (twins.call_watched, (0, 1), {**QUIET, "before": EXITS}),
        (twins.call_watched, (0, 1), {**QUIET, "after": EXITS}),
    ),
    "cache layer": (
        (twins.activate, 0),
        (twins.call_asked, 0, QUIET, Layer),
        (twins.call_asked, 0, FAILING, Layer),
        (twins.call_asked, 0, QUIET, None),
        (twins.call_asked, 99, QUIET, Layer),
    ),
    "hooks": (
        (twins.activate, 0),
        (twins.set_clock, 0, "layer", Layer),
        *(
            (twins.call_hook, name, args, result)
            for name in ("looked_up", "got", "received", "memoized", "computed")
            for args in ((), (BACKEND, b"12345"), ("no layer", None))
            for result in (None, NO_VALUE, b"four", [b"one", NO_VALUE])
        ),
    ),
    "statements": (
        (twins.activate, 0),
        (twins.set_clock, 0, "writes", True),
        *(
            (twins.call_hook, name, args, None)
            for name in ("stated", "executed")
            for args in ((), (BACKEND, 5, "SELECT 1"))
        ),
    ),
    "context manager": (
        (twins.activate, 0),
        *(
            (twins.use_context, {**CONTEXT, step: what})
            for step in CONTEXT
            for what in (RETURNS, RAISES, EXITS)
        ),
    ),
    "response": tuple(
        (twins.serve, 0, status, parts, does)
        for status in (STATUS, "x", None)
        for parts in ([b"one"], (b"one", b"two"), 5)
        for does in (RETURNS, RAISES, EXITS)
    ),
}


def played(operations: tuple[tuple[Any, ...], ...]) -> None:
    """Run operations once, on objects that are gone afterwards."""
    side = Side(_watch)
    side.outcome(twins.new_clock, "GET", 0, 2)
    for operation, *args in operations:
        side.outcome(operation, *args)
        side.log.clear()
    side.close()


def counted() -> int:
    """Return how many references, or memory blocks, there are."""
    gc.collect()
    if hasattr(sys, "gettotalrefcount"):
        return int(sys.gettotalrefcount())
    lasting = (None, True, False, NO_VALUE, Layer, Backend, BACKEND, STATUS, (), "GET")
    return sys.getallocatedblocks() + sum(map(sys.getrefcount, lasting))


def growth(operations: tuple[tuple[Any, ...], ...]) -> list[int]:
    """Return by how much each round of runs has made the count grow."""
    counts = []
    for _ in range(ROUNDS + 2):  # the first two fill caches
        for _ in range(RUNS):
            played(operations)
        counts.append(counted())
    return [after - before for before, after in zip(counts[1:], counts[2:])]


@pytest.mark.parametrize("name", SCENARIOS)
def test_references_do_not_grow(name) -> None:
    grown = growth(SCENARIOS[name])

    assert min(grown) < RUNS / 2, grown


def test_one_lost_reference_in_each_run_is_seen() -> None:
    def lose(side: Side) -> None:
        del side
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(NO_VALUE))

    assert min(growth(((lose,),))) >= RUNS

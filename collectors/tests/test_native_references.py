"""No operation of the native part leaks a reference.

As CPython's own `regrtest -R`: each operation is run many times over, and what is
counted must not grow.  A debug build of Python counts all references there are; any
other counts its memory blocks, and the references to some objects that live long.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

import differential
import pytest
from differential import EXITS, HOSTILE, LAYER, NO_VALUE, RAISES, RETURNS, Backend, Side

#: The same with each release of Keystone.
pytestmark = pytest.mark.newest

_native = pytest.importorskip("keylag_otel._native")

RUNS = 100
ROUNDS = 4

FAILING = {"call": RAISES, "before": RAISES, "after": RAISES, "on_error": RAISES}
QUIET = dict.fromkeys(FAILING, RETURNS)
CONTEXT = dict.fromkeys(("enter", "body", "exit", "on_exit"), RETURNS)
BACKEND = Backend()
STATUS = "200 OK"
#: Kinds of a wrapper, and its third argument.
UNRECORDED, RECORDED = (None, ()), ((2, 3), ("INSERT",))

#: Name of what is done to the operations that do it.
SCENARIOS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "timer": (
        (differential.call_timer, 0, "switch", (3, "call")),
        (differential.call_timer, 0, "annotate", ("name", [])),
        (differential.call_timer, 0, "increment", (7, 10**12)),
        (differential.call_timer, 0, "increment", (10**9, 1)),
    ),
    "timer, written down": (
        (differential.set_timer, 0, "records_events", True),
        (differential.call_timer, 0, "switch", (3, "call")),
        (differential.call_timer, 0, "annotate", ("name", [])),
        (differential.call_timer, 0, "increment", (7, 2)),
    ),
    "timer, attributes": tuple(
        (differential.set_timer, 0, name, value)
        for name in differential.ATTRIBUTES
        for value in HOSTILE
    ),
    "timer, wrong arguments": tuple(
        (differential.call_timer, 0, name, (value, value))
        for name in ("switch", "count", "increment", "annotate")
        for value in HOSTILE
    ),
    "timer, made": (
        (differential.new_timer, "GET", 3, 2),
        (differential.new_timer, "GET", 3, 10**4),
        (differential.initialize_again, "timer", 0, ("POST", 1, 1)),
        (differential.initialize_again, "timer", 0, ("POST", None, 1)),
        (differential.begin, {"REQUEST_METHOD": "GET"}),
    ),
    "aggregate": (
        (differential.new_aggregate, (1, 2), 2),
        (differential.add_timer, "aggregate", 0, 0, 200),
        (differential.copy_aggregate, 0),
        (differential.new_aggregate, (1, "x"), 2),
        (differential.new_aggregate, None, 2),
    ),
    "aggregator": (
        (differential.new_aggregator, (1, 2), 2),
        (differential.add_timer, "aggregator", 0, 0, 200),
        (differential.add_timer, "aggregator", 0, 0, []),
        (differential.add_invalid, "aggregator", 0, "timer"),
        (differential.increment_aggregator, 0, 5),
        (differential.increment_aggregator, 0, 10**9),
        (differential.clear_aggregator, 0),
    ),
    "wrapper without a request": (
        (differential.call_wrapper, (0, 1), FAILING, *UNRECORDED),
    ),
    "wrapper": (
        (differential.activate, 0),
        (differential.call_wrapper, (0, 1), QUIET, *UNRECORDED),
        (differential.call_wrapper, (255, 0), FAILING, *UNRECORDED),
        (differential.call_wrapper, (0, 1), {**QUIET, "call": EXITS}, *UNRECORDED),
        (differential.call_wrapper, (0, 1), {**QUIET, "before": EXITS}, *RECORDED),
        (differential.call_wrapper, (0, 1), {**QUIET, "after": EXITS}, *RECORDED),
        (differential.call_wrapper, (0, 1), QUIET, (2, None), ()),
    ),
    "cache layer": (
        (differential.activate, 0),
        (differential.call_cache_call, 0, 2, QUIET, LAYER),
        (differential.call_cache_call, 0, 2, FAILING, LAYER),
        (differential.call_cache_call, 0, 2, QUIET, None),
        (differential.call_cache_call, 99, 2, QUIET, LAYER),
        (differential.call_cache_call, 0, 99, QUIET, LAYER),
        (differential.new_aggregator, (1, 2), 2),
        (differential.add_timer, "aggregator", 0, 0, 200),
        (Side.observed,),
    ),
    "hooks": (
        (differential.activate, 0),
        (differential.set_timer, 0, "cache_layer", LAYER),
        *(
            (differential.call_hook, name, args, result)
            for name in (
                "count_cache_get",
                "count_bytes_received",
                "count_memoized_call",
                "mark_miss",
            )
            for args in ((), (BACKEND, b"12345"), ("no layer", None))
            for result in (None, NO_VALUE, b"four", [b"one", NO_VALUE])
        ),
    ),
    "statements": (
        (differential.activate, 0),
        (differential.set_timer, 0, "records_events", True),
        *(
            (differential.call_hook, name, args, None)
            for name in ("record_statement", "count_statement")
            for args in ((), (BACKEND, 5, "SELECT 1"))
        ),
    ),
    "context manager": (
        (differential.activate, 0),
        *(
            (differential.use_context, {**CONTEXT, step: what})
            for step in CONTEXT
            for what in (RETURNS, RAISES, EXITS)
        ),
    ),
    "response": tuple(
        (differential.serve, 0, status, parts, does)
        for status in (STATUS, "x", None)
        for parts in ([b"one"], (b"one", b"two"), 5)
        for does in (RETURNS, RAISES, EXITS)
    ),
}


def played(operations: tuple[tuple[Any, ...], ...]) -> None:
    """Run operations once, on objects that are freed afterwards."""
    side = Side(_native)
    side.outcome(differential.new_timer, "GET", 0, 2)
    for operation, *args in operations:
        side.outcome(operation, *args)
        side.log.clear()
    side.close()


def counted() -> int:
    """Return the number of references, or of memory blocks."""
    gc.collect()
    if hasattr(sys, "gettotalrefcount"):
        return int(sys.gettotalrefcount())
    lasting = (None, True, False, NO_VALUE, LAYER, Backend, BACKEND, STATUS, (), "GET")
    return sys.getallocatedblocks() + sum(map(sys.getrefcount, lasting))


def growth(operations: tuple[tuple[Any, ...], ...]) -> list[int]:
    """Return the growth of the count in each round of runs."""
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


def test_one_leaked_reference_per_run_is_detected() -> None:
    def lose(side: Side) -> None:
        del side
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(NO_VALUE))

    assert min(growth(((lose,),))) >= RUNS

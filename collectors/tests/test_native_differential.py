"""Random sequences of operations have the same outcome in Python and in C.

`HYPOTHESIS_EXAMPLES` plays as many new sequences; without it a few are played that
are always the same.  Each failure is shrunk to the shortest one that still fails.
"""

from __future__ import annotations

import os
from typing import Any

import differential
import pytest
from differential import HOSTILE, LAYER, NO_VALUE, Side
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from keylag_otel import pure
from keylag_otel.model import CALL_BOUNDS

#: The same with each release of Keystone.
pytestmark = pytest.mark.newest

_native = pytest.importorskip("keylag_otel._native")

EXAMPLES = os.environ.get("HYPOTHESIS_EXAMPLES")

indexes = st.integers(0, 3)
hostile = st.sampled_from(HOSTILE)
cells = st.integers(0, 255)
counters = st.integers(-3, 300) | st.sampled_from((4095, 4096, 10**9))
kinds = st.integers(-1, 17)
pairs_of_kinds = st.tuples(st.integers(0, 15), st.integers(0, 15))
statuses = st.sampled_from((200, 201, 401, 500, "200", None))
bounds = st.lists(st.integers(0, 100), max_size=18).map(sorted).map(tuple) | hostile
does = st.sampled_from(
    (None, differential.RETURNS, differential.RAISES, differential.EXITS)
)
mostly_returns = st.sampled_from(
    (differential.RETURNS,) * 3 + (differential.RAISES, differential.EXITS)
)

STATEMENTS = ("SELECT", "INSERT", "update", "delete", "", "Ü", "\U0001f600", None, 3)
CALLS = {
    "switch": st.tuples(cells) | st.tuples(cells, st.just("call")),
    "accumulate": st.just(()),
    "count": st.tuples(st.integers(-1, 3)),
    "increment": st.tuples(counters) | st.tuples(counters, st.integers(-5, 10**12)),
    "annotate": st.tuples(st.sampled_from(("name", "other")), hostile),
}
VALUES = {
    "current_cell": cells,
    "last_tick": st.integers(-(10**6), 10**15),
    "records_events": st.booleans(),
    "is_traced": st.booleans(),
}
texts = st.none() | st.text(max_size=3)


class SameOutcome(RuleBasedStateMachine):
    """Runs each operation in both parts and compares the outcomes."""

    def __init__(self) -> None:
        super().__init__()
        self.sides = (Side(pure), Side(_native))
        self.play(differential.new_timer, "GET", 0, 2)

    def teardown(self) -> None:
        for side in self.sides:
            side.close()

    def play(self, operation: Any, *args: Any) -> None:
        expected, found = (side.outcome(operation, *args) for side in self.sides)
        assert found == expected, (operation.__name__, args)

    @invariant()
    def everything_that_can_be_read_is_equal(self) -> None:
        expected, found = (side.observed() for side in self.sides)
        assert found == expected

    @rule(method=texts, at=cells | hostile, counts=st.integers(-1, 17) | hostile)
    def make_timer(self, method: Any, at: Any, counts: Any) -> None:
        self.play(differential.new_timer, method, at, counts)

    @rule(
        kind=st.sampled_from(("aggregate", "aggregator")),
        given=bounds,
        counts=st.just(2),
    )
    def make_aggregate(self, kind: str, given: Any, counts: Any) -> None:
        self.play(getattr(differential, f"new_{kind}"), given, counts)

    @rule(counts=st.integers(-2, 20) | hostile)
    def make_aggregate_with_any_count(self, counts: Any) -> None:
        self.play(differential.new_aggregate, (1, 2), counts)

    @rule(method=st.sampled_from(("GET", "MADE-UP", None)))
    def begin(self, method: str | None) -> None:
        environ = {} if method is None else {"REQUEST_METHOD": method}
        self.play(differential.begin, environ)

    @rule(which=indexes, data=st.data(), name=st.sampled_from(sorted(CALLS)))
    def call_timer(self, which: int, data: Any, name: str) -> None:
        self.play(differential.call_timer, which, name, data.draw(CALLS[name]))

    @rule(which=indexes, name=st.sampled_from(sorted(CALLS)), args=st.lists(hostile))
    def call_timer_with_invalid_arguments(
        self, which: int, name: str, args: Any
    ) -> None:
        self.play(differential.call_timer, which, name, tuple(args))

    @rule(which=indexes, name=st.sampled_from(differential.ATTRIBUTES), data=st.data())
    def set_timer(self, which: int, name: str, data: Any) -> None:
        self.play(
            differential.set_timer, which, name, data.draw(VALUES.get(name, texts))
        )

    @rule(which=indexes, name=st.sampled_from(sorted(VALUES)), value=hostile)
    def set_timer_to_invalid_value(self, which: int, name: str, value: Any) -> None:
        self.play(differential.set_timer, which, name, value)

    @rule(
        kind=st.sampled_from(("timer", "aggregate", "aggregator")),
        which=indexes,
        args=st.lists(hostile | st.integers(0, 9), max_size=3).map(tuple),
    )
    def initialize_again(self, kind: str, which: int, args: Any) -> None:
        self.play(differential.initialize_again, kind, which, args)

    @rule(which=st.none() | indexes)
    def activate(self, which: int | None) -> None:
        self.play(differential.activate, which)

    @rule(
        kind=st.sampled_from(("aggregate", "aggregator")),
        which=indexes,
        timer=indexes,
        status=statuses,
    )
    def add(self, kind: str, which: int, timer: int, status: Any) -> None:
        self.play(differential.add_timer, kind, which, timer, status)

    @rule(
        kind=st.sampled_from(("aggregate", "aggregator")), which=indexes, value=hostile
    )
    def add_invalid(self, kind: str, which: int, value: Any) -> None:
        self.play(differential.add_invalid, kind, which, value)

    @rule(which=indexes)
    def copy(self, which: int) -> None:
        self.play(differential.copy_aggregate, which)

    @rule(which=indexes, number=counters | hostile)
    def increment_aggregator(self, which: int, number: Any) -> None:
        self.play(differential.increment_aggregator, which, number)

    @rule(which=indexes)
    def clear(self, which: int) -> None:
        self.play(differential.clear_aggregator, which)

    @rule(
        cell=st.tuples(cells, cells),
        behaviour=st.fixed_dictionaries(
            dict.fromkeys(("call", "before", "after", "on_error"), does)
        ),
        kinds=st.none() | pairs_of_kinds,
        statement=st.lists(st.sampled_from(STATEMENTS), max_size=1),
    )
    def call_wrapper(
        self, cell: Any, behaviour: Any, kinds: Any, statement: Any
    ) -> None:
        self.play(differential.call_wrapper, cell, behaviour, kinds, statement)

    @rule(kinds=hostile | st.lists(hostile | kinds, max_size=3).map(tuple))
    def make_wrapper_with_invalid_kinds(self, kinds: Any) -> None:
        returns = dict.fromkeys(("call", "before", "after", "on_error"))
        self.play(differential.call_wrapper, (0, 1), returns, kinds, ())

    @rule(
        counted=st.integers(-1, 17),
        kind=kinds | hostile,
        behaviour=st.fixed_dictionaries(
            dict.fromkeys(("call", "after", "on_error"), does)
        ),
        layer=st.sampled_from((None, LAYER)),
    )
    def call_cache_call(
        self, counted: int, kind: Any, behaviour: Any, layer: Any
    ) -> None:
        self.play(differential.call_cache_call, counted, kind, behaviour, layer)

    @rule(nanoseconds=st.sampled_from((0, 7, *CALL_BOUNDS, CALL_BOUNDS[-1] + 1)))
    def set_call_time(self, nanoseconds: int) -> None:
        self.play(differential.set_call_time, nanoseconds)

    @rule(
        name=st.sampled_from(
            (
                *(
                    "count_cache_get",
                    "count_bytes_received",
                    "count_memoized_call",
                    "mark_miss",
                    "record_statement",
                ),
                "count_statement",
            )
        ),
        args=st.sampled_from(
            (
                (),
                (differential.Backend(),),
                (differential.Backend(), b"12345"),
                (differential.Backend(), 5, "SELECT 1"),
                (differential.Backend(), differential.Backend(), "SELECT 1"),
                (differential.REGION,),
                ("no layer", None, 3),
            )
        ),
        result=st.sampled_from(
            (None, NO_VALUE, b"four", "text", [b"one", NO_VALUE, [b"x", None]], 3)
        ),
    )
    def call_hook(self, name: str, args: Any, result: Any) -> None:
        self.play(differential.call_hook, name, args, result)

    @rule(which=indexes, layered=st.booleans())
    def set_cache_layer(self, which: int, *, layered: bool) -> None:
        self.play(
            differential.set_timer, which, "cache_layer", LAYER if layered else None
        )

    @rule(
        behaviour=st.fixed_dictionaries(
            dict.fromkeys(("enter", "body", "exit", "on_exit"), does)
        )
    )
    def use_context(self, behaviour: Any) -> None:
        self.play(differential.use_context, behaviour)

    @rule(
        which=indexes,
        status=st.sampled_from(("200 OK", "404", "x", "", None, 200, b"200 OK")),
        parts=st.sampled_from(([b"one"], (b"one", b"two"), (), [], None, 5)),
        behaviour=mostly_returns,
    )
    def serve(self, which: int, status: Any, parts: Any, behaviour: str) -> None:
        self.play(differential.serve, which, status, parts, behaviour)


SameOutcome.TestCase.settings = settings(
    max_examples=int(EXAMPLES or 60),
    derandomize=EXAMPLES is None,
    stateful_step_count=30,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSameOutcome = SameOutcome.TestCase

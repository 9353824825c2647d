"""Random sequences of operations have the same outcome in Python and in C.

`HYPOTHESIS_EXAMPLES` plays as many new sequences; without it a few are played that
are always the same.  Each failure is shrunk to the shortest one that still fails.
"""

from __future__ import annotations

import os
from typing import Any

import native_twins as twins
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from native_twins import HOSTILE, NO_VALUE, Layer, Side

from keylag_otel import pure, wrappers

_watch = pytest.importorskip("keylag_otel._watch")

EXAMPLES = os.environ.get("HYPOTHESIS_EXAMPLES")

whiches = st.integers(0, 3)
hostile = st.sampled_from(HOSTILE)
cells = st.integers(0, 255)
counters = st.integers(-3, 300) | st.sampled_from((4095, 4096, 10**9))
statuses = st.sampled_from((200, 201, 401, 500, "200", None))
bounds = st.lists(st.integers(0, 100), max_size=18).map(sorted).map(tuple) | hostile
does = st.sampled_from((None, twins.RETURNS, twins.RAISES, twins.EXITS))
mostly_returns = st.sampled_from((twins.RETURNS,) * 3 + (twins.RAISES, twins.EXITS))

CALLS = {
    "turn": st.tuples(cells) | st.tuples(cells, st.just("call")),
    "book": st.just(()),
    "count": st.tuples(st.integers(-1, 3)),
    "tally": st.tuples(counters) | st.tuples(counters, st.integers(-5, 10**12)),
    "note": st.tuples(st.sampled_from(("name", "other")), hostile),
}
VALUES = {
    "at": cells,
    "mark": st.integers(-(10**6), 10**15),
    "writes": st.booleans(),
    "kept": st.booleans(),
}
texts = st.none() | st.text(max_size=3)


class SameOutcome(RuleBasedStateMachine):
    """Plays each operation on both sides and compares what came of it."""

    def __init__(self) -> None:
        super().__init__()
        self.sides = (Side(pure), Side(_watch))
        self.play(twins.new_clock, "GET", 0, 2)

    def teardown(self) -> None:
        for side in self.sides:
            side.close()
        for half in (pure, _watch):
            half.tell_faults(wrappers.fault)

    def play(self, operation: Any, *args: Any) -> None:
        expected, found = (side.outcome(operation, *args) for side in self.sides)
        assert found == expected, (operation.__name__, args)

    @invariant()
    def everything_that_can_be_read_is_equal(self) -> None:
        expected, found = (side.observed() for side in self.sides)
        assert found == expected

    @rule(method=texts, at=cells | hostile, counts=st.integers(-1, 17) | hostile)
    def make_clock(self, method: Any, at: Any, counts: Any) -> None:
        self.play(twins.new_clock, method, at, counts)

    @rule(kind=st.sampled_from(("totals", "sums")), given=bounds, counts=st.just(2))
    def make_aggregate(self, kind: str, given: Any, counts: Any) -> None:
        self.play(getattr(twins, f"new_{kind}"), given, counts)

    @rule(counts=st.integers(-2, 20) | hostile)
    def make_totals_with_any_number_of_counts(self, counts: Any) -> None:
        self.play(twins.new_totals, (1, 2), counts)

    @rule(method=st.sampled_from(("GET", "MADE-UP", None)))
    def begin(self, method: str | None) -> None:
        environ = {} if method is None else {"REQUEST_METHOD": method}
        self.play(twins.begin, environ)

    @rule(which=whiches, data=st.data(), name=st.sampled_from(sorted(CALLS)))
    def call_clock(self, which: int, data: Any, name: str) -> None:
        self.play(twins.call_clock, which, name, data.draw(CALLS[name]))

    @rule(which=whiches, name=st.sampled_from(sorted(CALLS)), args=st.lists(hostile))
    def call_clock_with_nonsense(self, which: int, name: str, args: Any) -> None:
        self.play(twins.call_clock, which, name, tuple(args))

    @rule(which=whiches, name=st.sampled_from(twins.ATTRIBUTES), data=st.data())
    def set_clock(self, which: int, name: str, data: Any) -> None:
        self.play(twins.set_clock, which, name, data.draw(VALUES.get(name, texts)))

    @rule(which=whiches, name=st.sampled_from(sorted(VALUES)), value=hostile)
    def set_clock_to_nonsense(self, which: int, name: str, value: Any) -> None:
        self.play(twins.set_clock, which, name, value)

    @rule(
        kind=st.sampled_from(("clock", "totals", "sums")),
        which=whiches,
        args=st.lists(hostile | st.integers(0, 9), max_size=3).map(tuple),
    )
    def initialize_again(self, kind: str, which: int, args: Any) -> None:
        self.play(twins.initialize_again, kind, which, args)

    @rule(which=st.none() | whiches)
    def activate(self, which: int | None) -> None:
        self.play(twins.activate, which)

    @rule(
        kind=st.sampled_from(("totals", "sums")),
        which=whiches,
        clock=whiches,
        status=statuses,
    )
    def add(self, kind: str, which: int, clock: int, status: Any) -> None:
        self.play(twins.add_clock, kind, which, clock, status)

    @rule(kind=st.sampled_from(("totals", "sums")), which=whiches, value=hostile)
    def add_nonsense(self, kind: str, which: int, value: Any) -> None:
        self.play(twins.add_nonsense, kind, which, value)

    @rule(which=whiches)
    def copy(self, which: int) -> None:
        self.play(twins.copy_totals, which)

    @rule(which=whiches, number=counters | hostile)
    def count_in_sums(self, which: int, number: Any) -> None:
        self.play(twins.count_in_sums, which, number)

    @rule(which=whiches)
    def clear(self, which: int) -> None:
        self.play(twins.clear_sums, which)

    @rule(
        cell=st.tuples(cells, cells),
        told=st.fixed_dictionaries(
            dict.fromkeys(("call", "before", "after", "failed"), does)
        ),
    )
    def call_watched(self, cell: Any, told: Any) -> None:
        self.play(twins.call_watched, cell, told)

    @rule(
        counted=st.integers(-1, 17),
        told=st.fixed_dictionaries(dict.fromkeys(("call", "after", "failed"), does)),
        layer=st.sampled_from((None, Layer)),
    )
    def call_asked(self, counted: int, told: Any, layer: Any) -> None:
        self.play(twins.call_asked, counted, told, layer)

    @rule(
        name=st.sampled_from(
            (
                *("looked_up", "got", "received", "memoized", "computed", "stated"),
                "executed",
            )
        ),
        args=st.sampled_from(
            (
                (),
                (twins.Backend(),),
                (twins.Backend(), b"12345"),
                (twins.Backend(), 5, "SELECT 1"),
                ("no layer", None, 3),
            )
        ),
        result=st.sampled_from(
            (None, NO_VALUE, b"four", "text", [b"one", NO_VALUE, [b"x", None]], 3)
        ),
    )
    def call_hook(self, name: str, args: Any, result: Any) -> None:
        self.play(twins.call_hook, name, args, result)

    @rule(which=whiches, layered=st.booleans())
    def ask_layer(self, which: int, *, layered: bool) -> None:
        self.play(twins.set_clock, which, "layer", Layer if layered else None)

    @rule(
        told=st.fixed_dictionaries(
            dict.fromkeys(("enter", "body", "exit", "left"), does)
        )
    )
    def use_context(self, told: Any) -> None:
        self.play(twins.use_context, told)

    @rule(
        which=whiches,
        status=st.sampled_from(("200 OK", "404", "x", "", None, 200, b"200 OK")),
        parts=st.sampled_from(([b"one"], (b"one", b"two"), (), [], None, 5)),
        told=mostly_returns,
    )
    def serve(self, which: int, status: Any, parts: Any, told: str) -> None:
        self.play(twins.serve, which, status, parts, told)


SameOutcome.TestCase.settings = settings(
    max_examples=int(EXAMPLES or 60),
    derandomize=EXAMPLES is None,
    stateful_step_count=30,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSameOutcome = SameOutcome.TestCase

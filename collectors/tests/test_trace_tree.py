"""From what a clock wrote down to few enough spans, without losing a nanosecond."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from keylag_otel.clock import START
from keylag_otel.model import CELLS, EVENT_LIMIT, cell_of
from keylag_otel.traces.events import Call, tree, without_points
from keylag_otel.traces.gathering import LIMIT, REPEATED, gathered, walk

SQL, ORM, CACHE = (cell_of(phase, "validate") for phase in ("sql", "orm", "cache"))


def query() -> None:
    """Stand for a call."""


def fetch() -> None:
    """Stand for another one."""


def own_times(request: Call) -> Counter[int]:
    """Return the nanoseconds of each cell, inner calls left out."""
    found: Counter[int] = Counter()
    for call in walk(request):
        found[call.cell] += call.own
    return +found


def shape(call: Call) -> Any:
    """Return times, callee and inner calls as plain values."""
    inner = [shape(each) for each in call.inner]
    return (call.callee, call.began, call.ended, inner)


def test_calls_are_inside_the_calls_that_made_them() -> None:
    events = [
        (10, ORM, query),
        (20, SQL, fetch),
        ("db.query.text", "SELECT 1"),
        (30, ORM, None),
        (35, START, None),
    ]

    request = tree(events, 0, 50)

    assert shape(request) == (None, 0, 50, [(query, 10, 35, [(fetch, 20, 30, [])])])
    assert request.inner[0].inner[0].notes == [("db.query.text", "SELECT 1")]
    assert request.inner[0].inner[0].cell == SQL
    assert own_times(request) == {START: 25, ORM: 15, SQL: 10}


def test_what_was_cut_off_lasts_as_long_as_the_request() -> None:
    request = tree([(10, ORM, query), (20, SQL, fetch)], 0, 50)

    assert shape(request) == (None, 0, 50, [(query, 10, 50, [(fetch, 20, 50, [])])])


def test_a_clock_writes_down_what_the_tree_needs(time, running) -> None:
    began = running.mark
    running.writes = True
    outside = running.turn(ORM, query)
    time.passes(5)
    running.note("name", "value")
    running.turn(outside)
    time.passes(3)
    running.book()

    request = tree(running.events, began, running.wall_ns)

    assert shape(request) == (None, began, began + 8, [(query, began, began + 5, [])])
    assert own_times(request)[ORM] == running.spent()[ORM]


def test_a_clock_stops_writing_down_when_it_is_full(running) -> None:
    running.writes = True
    for _ in range(EVENT_LIMIT + 10):
        running.turn(ORM, query)
        running.note("name", "value")

    assert len(running.events) == EVENT_LIMIT
    assert running.is_full


def calls(count: int, text: str | None = None, cell: int = SQL) -> list[Any]:
    """Return the events of that many calls of 10 ns, with 10 ns after each."""
    notes = [] if text is None else [("db.query.text", text)]
    return [
        event
        for index in range(count)
        for event in (
            (20 * index, cell, query),
            *notes,
            (20 * index + 10, START, None),
        )
    ]


def test_calls_with_nothing_to_tell_are_one() -> None:
    (one,) = gathered(tree(calls(3), 0, 100)).inner

    assert (one.times, one.began, one.length) == (3, 0, 30)


@pytest.mark.parametrize(
    ("count", "spans"), [(REPEATED, REPEATED), (REPEATED + 1, 1), (2 * REPEATED, 1)]
)
def test_a_statement_is_one_when_it_is_repeated_often(count, spans) -> None:
    small = gathered(tree(calls(count, "SELECT 1"), 0, 1000))

    assert len(small.inner) == spans
    assert sum(call.times for call in small.inner) == count


def test_a_large_trace_is_small_enough() -> None:
    texts = [f"SELECT {number % 50}" for number in range(3 * LIMIT)]
    events = [
        event
        for index, text in enumerate(texts)
        for event in ((index, SQL, query), ("db.query.text", text), (index, 0, None))
    ]

    assert sum(1 for _ in walk(gathered(tree(events, 0, 5000)))) <= LIMIT


def test_points_of_osprofiler_are_no_calls_of_ours() -> None:
    point = {"name": "db-start"}
    events = [(5, ORM, point), (10, SQL, query), (20, ORM, None), (30, START, None)]

    request = without_points(tree(events, 0, 50))

    assert shape(request) == (None, 0, 50, [(query, 10, 20, [])])


def random_events(choose: random.Random) -> tuple[list[Any], int]:
    """Return events as a clock writes them down, and the moment after them."""
    moment, cells, events = 0, [START], []
    for _ in range(choose.randrange(300)):
        moment += choose.randrange(20)
        if choose.random() < 0.5 and len(cells) < 6:
            cells.append(choose.choice([SQL, ORM, CACHE]))
            events.append((moment, cells[-1], choose.choice([query, fetch])))
            if choose.random() < 0.3:
                events.append(("db.query.text", choose.choice("ab")))
        elif len(cells) > 1:
            cells.pop()
            events.append((moment, cells[-1], None))
    return events, moment + choose.randrange(20)


@pytest.mark.parametrize("seed", range(50))
def test_gathering_keeps_every_nanosecond_in_its_cell(seed) -> None:
    events, wall = random_events(random.Random(seed))  # noqa: S311 - it has to repeat
    request = tree(events, 0, wall)

    small = gathered(request)

    assert own_times(small) == own_times(request)
    assert small.length == wall
    for call in walk(small):
        ends = [call.began, *(inner.ended for inner in call.inner)]
        assert all(a <= i.began for a, i in zip(ends, call.inner))
        assert ends[-1] <= call.ended


def test_every_cell_has_a_place() -> None:
    used = set(own_times(tree(calls(1, cell=CACHE), 0, 30)))

    assert len(used) == 2
    assert used <= set(CELLS)

"""From recorded events to collapsed spans, without losing a nanosecond."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from keylag_otel.model import CELLS, EVENT_LIMIT, cell_of
from keylag_otel.request_timer import INITIAL_CELL
from keylag_otel.traces.collapse_spans import REPEAT_LIMIT, SPAN_LIMIT, collapse, walk
from keylag_otel.traces.events import TracedCall, build_tree, remove_osprofiler_points

SQL, ORM, CACHE = (cell_of(phase, "validate") for phase in ("sql", "orm", "cache"))


def query() -> None:
    """A wrapped call."""


def fetch() -> None:
    """Another wrapped call."""


def own_times(request: TracedCall) -> Counter[int]:
    """Return the nanoseconds of each cell, inner calls left out."""
    found: Counter[int] = Counter()
    for call in walk(request):
        found[call.cell] += call.self_time
    return +found


def shape(call: TracedCall) -> Any:
    """Return times, callee and inner calls as plain values."""
    children = [shape(each) for each in call.children]
    return (call.callee, call.started_at, call.ended_at, children)


def test_tree_nests_calls_in_their_callers() -> None:
    events = [
        (10, ORM, query),
        (20, SQL, fetch),
        ("db.query.text", "SELECT 1"),
        (30, ORM, None),
        (35, INITIAL_CELL, None),
    ]

    request = build_tree(events, 0, 50)

    assert shape(request) == (None, 0, 50, [(query, 10, 35, [(fetch, 20, 30, [])])])
    assert request.children[0].children[0].annotations == [
        ("db.query.text", "SELECT 1")
    ]
    assert request.children[0].children[0].cell == SQL
    assert own_times(request) == {INITIAL_CELL: 25, ORM: 15, SQL: 10}


def test_unfinished_calls_last_as_long_as_the_request() -> None:
    request = build_tree([(10, ORM, query), (20, SQL, fetch)], 0, 50)

    assert shape(request) == (None, 0, 50, [(query, 10, 50, [(fetch, 20, 50, [])])])


def test_timer_records_events_for_the_tree(time, active_timer) -> None:
    started_at = active_timer.last_tick
    active_timer.records_events = True
    outside = active_timer.switch(ORM, query)
    time.passes(5)
    active_timer.annotate("name", "value")
    active_timer.switch(outside)
    time.passes(3)
    active_timer.accumulate()

    request = build_tree(active_timer.events, started_at, active_timer.wall_ns)

    assert shape(request) == (
        None,
        started_at,
        started_at + 8,
        [(query, started_at, started_at + 5, [])],
    )
    assert own_times(request)[ORM] == active_timer.self_times()[ORM]


def test_timer_drops_events_beyond_the_limit(active_timer) -> None:
    active_timer.records_events = True
    for _ in range(EVENT_LIMIT + 10):
        active_timer.switch(ORM, query)
        active_timer.annotate("name", "value")

    assert len(active_timer.events) == EVENT_LIMIT
    assert active_timer.event_limit_reached


def calls(count: int, text: str | None = None, cell: int = SQL) -> list[Any]:
    """Return the events of that many calls of 10 ns, with 10 ns after each."""
    annotations = [] if text is None else [("db.query.text", text)]
    return [
        event
        for index in range(count)
        for event in (
            (20 * index, cell, query),
            *annotations,
            (20 * index + 10, INITIAL_CELL, None),
        )
    ]


def test_plain_leaf_calls_are_collapsed() -> None:
    (one,) = collapse(build_tree(calls(3), 0, 100)).children

    assert (one.count, one.started_at, one.duration) == (3, 0, 30)


@pytest.mark.parametrize(
    ("count", "spans"),
    [(REPEAT_LIMIT, REPEAT_LIMIT), (REPEAT_LIMIT + 1, 1), (2 * REPEAT_LIMIT, 1)],
)
def test_repeated_statements_are_collapsed(count, spans) -> None:
    small = collapse(build_tree(calls(count, "SELECT 1"), 0, 1000))

    assert len(small.children) == spans
    assert sum(call.count for call in small.children) == count


def test_large_trace_is_collapsed_to_the_limit() -> None:
    texts = [f"SELECT {number % 50}" for number in range(3 * SPAN_LIMIT)]
    events = [
        event
        for index, text in enumerate(texts)
        for event in ((index, SQL, query), ("db.query.text", text), (index, 0, None))
    ]

    assert sum(1 for _ in walk(collapse(build_tree(events, 0, 5000)))) <= SPAN_LIMIT


def test_osprofiler_points_are_removed() -> None:
    point = {"name": "db-start"}
    events = [
        (5, ORM, point),
        (10, SQL, query),
        (20, ORM, None),
        (30, INITIAL_CELL, None),
    ]

    request = remove_osprofiler_points(build_tree(events, 0, 50))

    assert shape(request) == (None, 0, 50, [(query, 10, 20, [])])


def random_events(choose: random.Random) -> tuple[list[Any], int]:
    """Return events as a timer records them, and the moment after them."""
    moment, cells, events = 0, [INITIAL_CELL], []
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
def test_collapsing_keeps_self_times(seed) -> None:
    events, wall = random_events(random.Random(seed))  # noqa: S311 - it has to repeat
    request = build_tree(events, 0, wall)

    small = collapse(request)

    assert own_times(small) == own_times(request)
    assert small.duration == wall
    for call in walk(small):
        ends = [call.started_at, *(children.ended_at for children in call.children)]
        assert all(a <= i.started_at for a, i in zip(ends, call.children))
        assert ends[-1] <= call.ended_at


def test_every_cell_of_random_events_exists() -> None:
    used = set(own_times(build_tree(calls(1, cell=CACHE), 0, 30)))

    assert len(used) == 2
    assert used <= set(CELLS)

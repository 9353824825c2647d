"""Self times: nothing is counted twice, and nothing is lost."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from keylag_otel.clock import Clock, active
from keylag_otel.model import CELLS
from keylag_otel.wrappers import counted, noted, timed, timed_context, timed_iterator


def booked(clock: Clock) -> dict[tuple[str, str], int]:
    """Nanoseconds by (phase, operation), without the empty cells."""
    clock.book()
    return {CELLS[cell]: spent for cell, spent in clock.cells.items() if spent}


def test_time_inside_a_nested_call_belongs_to_that_call_alone(running, time) -> None:
    inner = timed("sql")(lambda: time.passes(30))

    def work() -> None:
        time.passes(5)
        inner()
        time.passes(7)

    timed("cache")(work)()
    time.passes(2)

    assert booked(running) == {
        ("sql", "other"): 30,
        ("cache", "other"): 12,
        ("other", "other"): 2,
    }
    assert running.wall_ns == 44


def test_an_operation_keeps_the_phase_and_a_phase_the_operation(running, time) -> None:
    sql = timed("sql")(lambda: time.passes(3))

    def roles() -> None:
        time.passes(4)
        sql()

    timed("render", "render")(timed(operation="roles")(roles))()

    assert booked(running) == {("render", "roles"): 4, ("sql", "roles"): 3}


def test_the_innermost_operation_wins(running, time) -> None:
    inner = timed(operation="issue")(lambda: time.passes(1))

    timed(operation="authenticate")(inner)()

    assert booked(running) == {("other", "issue"): 1}


def test_a_call_inside_its_own_phase_is_not_timed_again(running, time) -> None:
    reads = []
    inner = timed("cache")(lambda: reads.append(running.at))

    timed("cache")(inner)()

    assert len(reads) == 1
    assert running.at == 0


def test_exceptions_pass_through_and_leave_the_clock_where_it_was(
    running, time
) -> None:
    error = ValueError("the caller's own")

    def fail() -> None:
        time.passes(9)
        raise error

    with pytest.raises(ValueError, match="the caller's own") as caught:
        timed("sql", "validate")(fail)()

    assert caught.value is error
    assert booked(running) == {("sql", "validate"): 9}
    assert running.at == 0


def test_even_a_killed_request_adds_up(running, time) -> None:
    def killed() -> None:
        time.passes(6)
        raise SystemExit

    with pytest.raises(SystemExit):
        timed("orm")(timed("sql")(killed))()

    assert running.at == 0
    assert booked(running) == {("sql", "other"): 6}


def test_arguments_results_and_names_are_untouched(running) -> None:
    def original(*args: Any, **kwargs: Any) -> Any:
        """Say what it was given."""
        return args, kwargs

    original.invalidate = "kept"

    watched = timed("cache")(counted("cache_calls")(original))

    assert watched(1, b=2) == ((1,), {"b": 2})
    assert watched.__name__ == "original"
    assert watched.invalidate == "kept"


def test_a_thread_of_a_request_books_nothing_of_its_own(running, time) -> None:
    seen = []
    call = timed("sql")(lambda: seen.append(active.get()))
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()

    assert seen == [None]
    assert booked(running) == {}


def test_outside_a_request_a_watched_call_just_runs() -> None:
    assert timed("sql")(lambda: 42)() == 42
    assert counted("sql_statements")(lambda: 42)() == 42


def test_an_iterator_left_half_read_leaves_no_clock_behind(running, time) -> None:
    def rows() -> Any:
        for row in range(3):
            time.passes(10)
            yield row

    iterator = timed_iterator("orm", rows())
    next(iterator)
    time.passes(1)
    next(iterator)
    del iterator

    assert booked(running) == {("orm", "other"): 20, ("other", "other"): 1}


def test_an_iterator_ends_as_it_would_unwatched(running) -> None:
    assert list(timed_iterator("orm", iter([1, 2]))) == [1, 2]


class Body:
    """A context manager that records how it was left."""

    def __enter__(self) -> str:
        return "entered"

    def __exit__(self, *exception: object) -> bool:
        self.left_with = exception[0]
        return True


def test_the_body_of_a_context_runs_in_its_phase_and_no_longer(running, time) -> None:
    context = Body()
    generate = timed_context("other")(lambda: context)

    def miss() -> None:
        time.passes(2)
        with generate() as entered:
            assert entered == "entered"
            time.passes(50)
            raise KeyError
        time.passes(3)

    timed("cache", "roles")(miss)()

    assert context.left_with is KeyError
    assert booked(running) == {("cache", "roles"): 5, ("other", "roles"): 50}


def test_calls_are_counted_even_when_they_fail(running) -> None:
    def fail() -> None:
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - the type is the point
        counted("sql_statements")(fail)()

    assert running.counts == [1, 0]


def test_a_note_that_fails_changes_nothing(running) -> None:
    def note(*_: Any) -> None:
        message = "ours"
        raise RuntimeError(message)

    assert noted(note)(lambda: "answer")() == "answer"

"""Self times: nothing is counted twice, and nothing is lost."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fake_time import FakeTime

from keylag_otel import ledger
from keylag_otel.model import CELLS
from keylag_otel.wrappers import (
    noted,
    noted_failure,
    noted_result,
    timed,
    timed_context,
)


@pytest.fixture
def time(half_time) -> FakeTime:
    return half_time


@pytest.fixture
def running(half, time) -> Iterator[Any]:
    """The clock of a request that is being worked on."""
    del time
    clock = half.Clock("GET", 0, 2)
    half.active.set(clock)
    yield clock
    half.active.set(None)


def booked(clock: Any) -> dict[tuple[str, str], int]:
    """Nanoseconds by (phase, operation)."""
    clock.book()
    return {CELLS[cell]: spent for cell, spent in clock.spent().items()}


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


@pytest.mark.parametrize("place", ["before", "after", "failed"])
def test_what_ends_a_program_is_not_our_fault_to_forget(running, place) -> None:
    def end(*_: Any) -> None:
        raise SystemExit

    def call() -> None:
        if place == "failed":
            raise KeyError

    with pytest.raises(SystemExit):
        timed("sql", **{place: end})(call)()

    assert running.at == 0


def test_arguments_results_and_names_are_untouched(running) -> None:
    def original(one: Any, *args: Any, two: Any = 2, **kwargs: Any) -> Any:
        """Say what it was given."""
        return one, args, two, kwargs

    original.invalidate = "kept"

    watched = timed("cache")(noted(lambda *_: None)(original))

    assert watched(1) == (1, (), 2, {})
    assert watched(1, 5, two=3, b=2) == (1, (5,), 3, {"b": 2})
    assert watched.__name__ == "original"
    assert watched.__doc__ == "Say what it was given."
    assert watched.invalidate == "kept"
    assert inspect.signature(watched) == inspect.signature(original)
    assert inspect.unwrap(watched) is original


def test_a_watched_method_is_a_method(running, time) -> None:
    class Host:
        def method(self, more: str = "") -> str:
            time.passes(3)
            return type(self).__name__ + more

    Host.method = timed("sql")(Host.method)

    assert Host().method() == "Host"
    assert Host().method(more="!") == "Host!"
    assert Host.method(Host(), "?") == "Host?"
    bound = Host().method
    assert bound("...") == "Host..."
    assert booked(running) == {("sql", "other"): 12}


def test_a_thread_of_a_request_books_nothing_of_its_own(half, running) -> None:
    seen = []
    call = timed("sql")(lambda: seen.append(half.active.get()))
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()

    assert seen == [None]
    assert booked(running) == {}


def test_outside_a_request_a_watched_call_just_runs(half) -> None:
    said = []
    watched = noted(lambda *_: said.append("noted"))(timed("sql")(lambda: 42))

    assert watched() == 42
    assert said == []


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


def test_a_body_left_when_its_request_is_over_books_nothing(half, running) -> None:
    context = timed_context("orm")(Body)()
    context.__enter__()
    other = half.Clock("GET", 3, 2)
    half.active.set(other)

    context.__exit__(None, None, None)

    assert other.at == 3
    half.active.set(running)


def test_a_context_outside_of_a_request_is_returned_as_it_is(half) -> None:
    context = Body()

    assert timed_context("orm")(lambda: context)() is context


def test_a_context_that_cannot_be_entered_leaves_its_phase(running, time) -> None:
    class Closed(Body):
        def __enter__(self) -> str:
            time.passes(4)
            raise BlockingIOError

    with pytest.raises(BlockingIOError), timed_context("orm")(Closed)():
        raise AssertionError
    time.passes(1)

    assert booked(running) == {("orm", "other"): 4, ("other", "other"): 1}


def test_the_note_of_a_body_is_told_when_it_is_left(running) -> None:
    told: list[Any] = []
    watch = timed_context("orm", lambda *read: told.append((running.at, *read)))
    with watch(lambda *_, **__: Body())(1, two=2):
        assert told == []

    assert told == [(0, running, (1,), {})]


def test_what_is_raised_in_a_body_is_raised_on(half, running) -> None:
    @contextmanager
    def computing(region: str) -> Iterator[str]:
        yield region

    watched = timed_context("orm", half.computed())(computing)
    with pytest.raises(KeyError) as raised, watched("region") as region:
        raise KeyError(region)

    assert raised.value.args == ("region",)
    assert running.missed == "region"
    assert running.at == 0


def test_the_note_of_a_body_that_fails_changes_nothing(half, running) -> None:
    faults: list[Any] = []
    half.tell_faults(faults.append)

    def note(*_: Any) -> None:
        raise RuntimeError

    with timed_context("orm", note)(Body)() as entered:
        assert entered == "entered"
        raise KeyError
    with pytest.raises(KeyError), timed_context("orm", note)(open)(__file__):
        raise KeyError

    assert faults == [Body, open]
    assert running.at == 0


def test_a_note_reads_arguments_result_and_failure(running) -> None:
    seen: list[Any] = []

    def fail(one: int, *, two: int) -> None:
        message = f"{one} {two}"
        raise KeyError(message)

    def work(one: int, *, two: int) -> int:
        return one + two

    before = noted(lambda clock, args, kwargs: seen.append((clock, args, kwargs)))
    after = noted_result(lambda _, args, result: seen.append((args, result)))
    failed = noted_failure(lambda _, args, error: seen.append((args, error)))
    with pytest.raises(KeyError) as caught:
        before(after(failed(fail)))(1, two=2)
    before(after(failed(work)))(1, two=2)

    assert seen == [
        (running, (1,), {"two": 2}),
        ((1,), caught.value),
        (running, (1,), {"two": 2}),
        ((1,), 3),
    ]


@pytest.mark.parametrize("maker", [noted, noted_result, noted_failure])
def test_a_note_that_fails_changes_nothing_but_a_counter(half, running, maker) -> None:
    def note(*_: Any) -> None:
        message = "ours"
        raise RuntimeError(message)

    def work(fails: int) -> str:
        if fails:
            message = "the caller's own"
            raise LookupError(message)
        return "answer"

    before = _faults()
    watched = maker(note)(work)

    assert watched(0) == "answer"
    with pytest.raises(LookupError, match="the caller's own"):
        watched(1)
    assert _faults() - before == (2 if maker is noted else 1)


def _faults() -> int:
    return sum(count for count, _ in ledger.LEDGER.tallied("faults"))


def test_calls_inside_calls_do_not_run_out_of_stack_sooner(running) -> None:
    def down(depth: int) -> int:
        return down_watched(depth - 1) if depth else 0

    down_watched = timed("sql")(timed("orm")(down))

    assert down_watched(sys.getrecursionlimit() // 5) == 0
    with pytest.raises(RecursionError):
        down_watched(10**6)
    assert running.at == 0


def test_what_was_watched_is_given_back(half, running) -> None:
    class Thing:
        pass

    def make() -> Any:
        thing = Thing()
        watched = timed("sql")(lambda: thing)
        thing.itself = watched
        watched()
        return weakref.ref(thing)

    kept = make()
    gc.collect()

    assert kept() is None


def test_counts_add_up_and_survive_what_is_no_number(running) -> None:
    running.tally(7)
    running.tally(7, 5)
    running.count(1)
    running.count(1)
    with pytest.raises(TypeError):
        running.tally(7, "many")

    assert running.tallies == {7: 6}
    assert running.counts == [0, 2]


def test_more_tallies_than_most_requests_have_are_all_kept(running) -> None:
    numbers = range(0, 4000, 13)
    for number in numbers:
        running.tally(number, number)
    running.tally(26)

    assert running.tallies == {number: number + (number == 26) for number in numbers}


class Cursor:
    """A cursor that returned some rows."""

    def __init__(self, rowcount: int) -> None:
        self.rowcount = rowcount


class Dialect:
    """What executes statements."""

    name = "mysql"


def test_what_was_executed_is_counted_with_its_rows(half, running) -> None:
    known = {"SELECT 1": (1, 2)}
    asked_for: list[str] = []
    execute = half.watch(
        lambda *_: "executed",
        before=half.stated(1, "system", "text"),
        after=half.executed(known, lambda text: asked_for.append(text) or (3, 4)),
    )

    for rows, statement in ((5, "SELECT 1"), (-1, "SELECT 1"), (7, "SELECT 2")):
        assert execute(Dialect, Cursor(rows), statement) == "executed"
    execute(Dialect)

    assert running.tallies == {1: 2, 2: 5, 3: 1, 4: 7}
    assert running.counts == [0, 4]
    assert asked_for == ["SELECT 2"]


def test_a_statement_is_written_down_if_its_request_may_be_traced(
    half, running
) -> None:
    execute = half.watch(lambda *_: None, before=half.stated(1, "system", "text"))
    execute(Dialect, None, "SELECT 1")
    running.writes = True
    execute(Dialect, None, "SELECT 2")

    assert running.events == [("system", "mysql"), ("text", "SELECT 2")]


class Asked:
    """Something with a layer, and the tallies of that as numbers."""

    _keylag_layer = types.SimpleNamespace(hit=1, miss=2, received=3)

    def get(self, key: str) -> Any:
        if isinstance(key, Exception):
            raise key
        return key


NO_VALUE = object()


@pytest.fixture
def asked(half, running) -> Iterator[Asked]:
    """Something whose layer is watched as a backend of the cache is."""
    failed = []
    kind = type("Kind", (Asked,), {"failed": failed})
    kind.get = half.asked(
        Asked.get,
        1,
        half.got(NO_VALUE),
        lambda clock, _, error: failed.append((clock.layer, error)),
    )
    yield kind()
    assert running.layer is None


def test_what_was_asked_is_counted_by_what_it_found(asked, running) -> None:
    found = ["value", NO_VALUE, None, b"12345", ["value", NO_VALUE, b"1"]]

    assert [asked.get(key) for key in found] == found
    assert running.tallies == {1: 4, 2: 3, 3: 6}
    assert running.counts == [0, 5]


def test_what_asks_itself_is_one_call(asked, half, running) -> None:
    class Outer(type(asked)):
        get_multi = half.asked(
            lambda self, keys: [self.get(key) for key in keys],
            1,
            half.got(NO_VALUE),
            print,
        )

    assert Outer().get_multi(["a", "b"]) == ["a", "b"]
    assert running.counts == [0, 1]
    assert running.tallies == {1: 2}


def test_a_call_that_fails_is_told_while_its_layer_is_known(asked, running) -> None:
    gone = ConnectionError("gone")

    with pytest.raises(ConnectionError) as raised:
        asked.get(gone)

    assert raised.value is gone
    assert asked.failed == [(Asked._keylag_layer, gone)]
    assert running.tallies == {}
    assert running.counts == [0, 1]


def test_what_has_no_layer_is_asked_all_the_same(half, running) -> None:
    ask = half.asked(lambda thing: thing, 1, half.got(NO_VALUE), print)

    assert ask(3) == 3
    assert running.counts == [0, 0]


def test_events_tell_when_something_was_asked(asked, running, time) -> None:
    running.writes = True
    time.passes(5)
    asked.get("value")

    (began, cell, call), tallied, (ended, left, nothing) = running.events
    assert (began, cell, call) == (running.mark, running.at, Asked.get)
    assert tallied == (None, 1)
    assert (ended, left, nothing) == (running.mark, running.at, None)


def test_bytes_on_their_way_are_counted_for_the_layer_that_is_asked(
    asked, half, running
) -> None:
    receive = half.watch(lambda *_: None, before=half.received(1))
    receive("self", 7)
    running.layer = Asked._keylag_layer
    receive("self", 7)
    receive("self", b"123")
    receive("self")
    running.layer = None

    assert running.tallies == {3: 10}


def test_what_no_layer_was_asked_for_is_our_fault_alone(half, running) -> None:
    faults: list[Any] = []
    half.tell_faults(faults.append)
    find = half.watch(lambda *_: "found", after=half.got(None))

    assert find() == "found"
    assert len(faults) == 1
    assert running.tallies == {}


def test_without_a_request_nothing_is_counted(asked, half) -> None:
    half.active.set(None)

    assert asked.get("value") == "value"

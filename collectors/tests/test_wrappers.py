"""Self times: no time is counted twice or lost."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from differential import Layer
from fake_time import FakeTime

from keylag_otel import request_aggregator
from keylag_otel.model import CALL_BOUNDS, CELLS
from keylag_otel.wrappers import (
    after_call,
    before_call,
    on_exception,
    timed,
    timed_context,
)


@pytest.fixture
def time(time_source) -> FakeTime:
    return time_source


@pytest.fixture
def active_timer(hot_path, time) -> Iterator[Any]:
    """The current timer of a request."""
    del time
    timer = hot_path.RequestTimer("GET", 0, 2)
    hot_path.timer_var.set(timer)
    yield timer
    hot_path.timer_var.set(None)


def breakdown_of(timer: Any) -> dict[tuple[str, str], int]:
    """Nanoseconds by (phase, operation)."""
    timer.accumulate()
    return {CELLS[cell]: spent for cell, spent in timer.self_times().items()}


def test_time_inside_a_nested_call_belongs_to_that_call_alone(
    active_timer, time
) -> None:
    inner = timed("sql")(lambda: time.passes(30))

    def work() -> None:
        time.passes(5)
        inner()
        time.passes(7)

    timed("cache")(work)()
    time.passes(2)

    assert breakdown_of(active_timer) == {
        ("sql", "other"): 30,
        ("cache", "other"): 12,
        ("other", "other"): 2,
    }
    assert active_timer.wall_ns == 44


def test_an_operation_keeps_the_phase_and_a_phase_the_operation(
    active_timer, time
) -> None:
    sql = timed("sql")(lambda: time.passes(3))

    def roles() -> None:
        time.passes(4)
        sql()

    timed("render", "render")(timed(operation="roles")(roles))()

    assert breakdown_of(active_timer) == {("render", "roles"): 4, ("sql", "roles"): 3}


def test_the_innermost_operation_wins(active_timer, time) -> None:
    inner = timed(operation="issue")(lambda: time.passes(1))

    timed(operation="authenticate")(inner)()

    assert breakdown_of(active_timer) == {("other", "issue"): 1}


def test_a_call_inside_its_own_phase_is_not_timed_again(active_timer, time) -> None:
    reads = []
    inner = timed("cache")(lambda: reads.append(active_timer.current_cell))

    timed("cache")(inner)()

    assert len(reads) == 1
    assert active_timer.current_cell == 0


def test_exceptions_propagate_and_restore_the_cell(active_timer, time) -> None:
    error = ValueError("the caller's own")

    def fail() -> None:
        time.passes(9)
        raise error

    with pytest.raises(ValueError, match="the caller's own") as caught:
        timed("sql", "validate")(fail)()

    assert caught.value is error
    assert breakdown_of(active_timer) == {("sql", "validate"): 9}
    assert active_timer.current_cell == 0


def test_killed_request_adds_up(active_timer, time) -> None:
    def killed() -> None:
        time.passes(6)
        raise SystemExit

    with pytest.raises(SystemExit):
        timed("orm")(timed("sql")(killed))()

    assert active_timer.current_cell == 0
    assert breakdown_of(active_timer) == {("sql", "other"): 6}


@pytest.mark.parametrize("place", ["before", "after", "on_error"])
def test_base_exceptions_from_hooks_propagate(active_timer, place) -> None:
    def end(*_: Any) -> None:
        raise SystemExit

    def call() -> None:
        if place == "on_error":
            raise KeyError

    with pytest.raises(SystemExit):
        timed("sql", **{place: end})(call)()

    assert active_timer.current_cell == 0


def test_wrapper_keeps_arguments_results_and_names(active_timer) -> None:
    def original(one: Any, *args: Any, two: Any = 2, **kwargs: Any) -> Any:
        """Return the arguments."""
        return one, args, two, kwargs

    original.invalidate = "kept"

    wrapper = timed("cache")(before_call(lambda *_: None)(original))

    assert wrapper(1) == (1, (), 2, {})
    assert wrapper(1, 5, two=3, b=2) == (1, (5,), 3, {"b": 2})
    assert wrapper.__name__ == "original"
    assert wrapper.__doc__ == "Return the arguments."
    assert wrapper.invalidate == "kept"
    assert inspect.signature(wrapper) == inspect.signature(original)
    assert inspect.unwrap(wrapper) is original


def test_wrapped_method_is_a_method(active_timer, time) -> None:
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
    assert breakdown_of(active_timer) == {("sql", "other"): 12}


def test_thread_of_a_request_is_not_timed(hot_path, active_timer) -> None:
    seen = []
    call = timed("sql")(lambda: seen.append(hot_path.timer_var.get()))
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()

    assert seen == [None]
    assert breakdown_of(active_timer) == {}


def test_outside_a_request_a_wrapper_only_calls(hot_path) -> None:
    said = []
    wrapper = before_call(lambda *_: said.append("noted"))(timed("sql")(lambda: 42))

    assert wrapper() == 42
    assert said == []


class Body:
    """A context manager that records its exception."""

    def __enter__(self) -> str:
        return "entered"

    def __exit__(self, *exception: object) -> bool:
        self.left_with = exception[0]
        return True


def test_context_manager_body_runs_in_its_phase(active_timer, time) -> None:
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
    assert breakdown_of(active_timer) == {("cache", "roles"): 5, ("other", "roles"): 50}


def test_body_that_outlives_its_request_is_not_timed(hot_path, active_timer) -> None:
    context = timed_context("orm")(Body)()
    context.__enter__()
    other = hot_path.RequestTimer("GET", 3, 2)
    hot_path.timer_var.set(other)

    context.__exit__(None, None, None)

    assert other.current_cell == 3
    hot_path.timer_var.set(active_timer)


def test_outside_a_request_the_context_manager_is_unchanged(hot_path) -> None:
    context = Body()

    assert timed_context("orm")(lambda: context)() is context


def test_failing_enter_restores_the_cell(active_timer, time) -> None:
    class Closed(Body):
        def __enter__(self) -> str:
            time.passes(4)
            raise BlockingIOError

    with pytest.raises(BlockingIOError), timed_context("orm")(Closed)():
        raise AssertionError
    time.passes(1)

    assert breakdown_of(active_timer) == {("orm", "other"): 4, ("other", "other"): 1}


def test_on_exit_hook_runs_after_the_body(active_timer) -> None:
    calls: list[Any] = []
    watch = timed_context(
        "orm", lambda *read: calls.append((active_timer.current_cell, *read))
    )
    with watch(lambda *_, **__: Body())(1, two=2):
        assert calls == []

    assert calls == [(0, active_timer, (1,), {})]


def test_exceptions_of_the_body_propagate(hot_path, active_timer) -> None:
    @contextmanager
    def computing(region: str) -> Iterator[str]:
        yield region

    wrapper = timed_context("orm", hot_path.mark_miss())(computing)
    with pytest.raises(KeyError) as raised, wrapper("region") as region:
        raise KeyError(region)

    assert raised.value.args == ("region",)
    assert active_timer.missed_region == "region"
    assert active_timer.current_cell == 0


def test_failing_on_exit_hook_is_suppressed(hot_path, active_timer) -> None:
    faults: list[Any] = []
    hot_path.set_fault_handler(faults.append)

    def hook(*_: Any) -> None:
        raise RuntimeError

    with timed_context("orm", hook)(Body)() as entered:
        assert entered == "entered"
        raise KeyError
    with pytest.raises(KeyError), timed_context("orm", hook)(open)(__file__):
        raise KeyError

    assert faults == [Body, open]
    assert active_timer.current_cell == 0


def test_hooks_get_arguments_result_and_exception(active_timer) -> None:
    seen: list[Any] = []

    def fail(one: int, *, two: int) -> None:
        message = f"{one} {two}"
        raise KeyError(message)

    def work(one: int, *, two: int) -> int:
        return one + two

    before = before_call(lambda timer, args, kwargs: seen.append((timer, args, kwargs)))
    after = after_call(lambda _, args, result: seen.append((args, result)))
    failed = on_exception(lambda _, args, error: seen.append((args, error)))
    with pytest.raises(KeyError) as caught:
        before(after(failed(fail)))(1, two=2)
    before(after(failed(work)))(1, two=2)

    assert seen == [
        (active_timer, (1,), {"two": 2}),
        ((1,), caught.value),
        (active_timer, (1,), {"two": 2}),
        ((1,), 3),
    ]


@pytest.mark.parametrize("factory", [before_call, after_call, on_exception])
def test_failing_hook_only_counts_a_fault(hot_path, active_timer, factory) -> None:
    def hook(*_: Any) -> None:
        message = "ours"
        raise RuntimeError(message)

    def work(fails: int) -> str:
        if fails:
            message = "the caller's own"
            raise LookupError(message)
        return "answer"

    before = _faults()
    wrapper = factory(hook)(work)

    assert wrapper(0) == "answer"
    with pytest.raises(LookupError, match="the caller's own"):
        wrapper(1)
    assert _faults() - before == (2 if factory is before_call else 1)


def _faults() -> int:
    return sum(
        count for count, _ in request_aggregator.AGGREGATOR.counter_values("faults")
    )


def test_nested_wrappers_recurse_as_deep_as_functions(active_timer) -> None:
    def down(depth: int) -> int:
        return down_watched(depth - 1) if depth else 0

    down_watched = timed("sql")(timed("orm")(down))

    assert down_watched(sys.getrecursionlimit() // 5) == 0
    with pytest.raises(RecursionError):
        down_watched(10**6)
    assert active_timer.current_cell == 0


def test_wrapper_is_garbage_collected(hot_path, active_timer) -> None:
    class Thing:
        pass

    def make() -> Any:
        thing = Thing()
        wrapper = timed("sql")(lambda: thing)
        thing.itself = wrapper
        wrapper()
        return weakref.ref(thing)

    kept = make()
    gc.collect()

    assert kept() is None


def test_counters_add_up_and_reject_non_numbers(active_timer) -> None:
    active_timer.increment(7)
    active_timer.increment(7, 5)
    active_timer.count(1)
    active_timer.count(1)
    with pytest.raises(TypeError):
        active_timer.increment(7, "many")

    assert active_timer.counters == {7: 6}
    assert active_timer.counts == [0, 2]


def test_many_counters_use_the_overflow_table(active_timer) -> None:
    numbers = range(0, 4000, 13)
    for number in numbers:
        active_timer.increment(number, number)
    active_timer.increment(26)

    assert active_timer.counters == {
        number: number + (number == 26) for number in numbers
    }


class Cursor:
    """A cursor that returned some rows."""

    def __init__(self, rowcount: int) -> None:
        self.rowcount = rowcount


class Dialect:
    """A minimal dialect."""

    name = "mysql"


def test_executed_statements_are_counted_with_rows(hot_path, active_timer) -> None:
    known = {"SELECT 1": (1, 2)}
    asked_for: list[str] = []
    execute = hot_path.wrap(
        lambda *_: "executed",
        before=hot_path.record_statement(1, "system", "text"),
        after=hot_path.count_statement(
            known, lambda text: asked_for.append(text) or (3, 4)
        ),
    )

    for rows, statement in ((5, "SELECT 1"), (-1, "SELECT 1"), (7, "SELECT 2")):
        assert execute(Dialect, Cursor(rows), statement) == "executed"
    execute(Dialect)

    assert active_timer.counters == {1: 2, 2: 5, 3: 1, 4: 7}
    assert active_timer.counts == [0, 4]
    assert asked_for == ["SELECT 2"]


def test_statement_is_recorded_if_events_are(hot_path, active_timer) -> None:
    execute = hot_path.wrap(
        lambda *_: None, before=hot_path.record_statement(1, "system", "text")
    )
    execute(Dialect, None, "SELECT 1")
    active_timer.records_events = True
    execute(Dialect, None, "SELECT 2")

    assert active_timer.events == [("system", "mysql"), ("text", "SELECT 2")]


class Backend:
    """A backend with a cache layer."""

    _keylag_layer = Layer(hit=1, miss=2, received=3)

    def get(self, key: str) -> Any:
        if isinstance(key, Exception):
            raise key
        return key


NO_VALUE = object()
KIND = 2


def count_nothing(*_: Any) -> None:
    """Stand in for a hook."""


@pytest.fixture
def backend(hot_path, active_timer) -> Iterator[Backend]:
    """A wrapped backend with a cache layer."""
    failed = []
    kind = type("Kind", (Backend,), {"failed": failed})
    kind.get = hot_path.wrap_cache_call(
        Backend.get,
        1,
        KIND,
        hot_path.count_cache_get(NO_VALUE),
        lambda timer, _, error: failed.append((timer.cache_layer, error)),
    )
    yield kind()
    assert active_timer.cache_layer is None


def test_cache_gets_are_counted_by_result(backend, active_timer) -> None:
    found = ["value", NO_VALUE, None, b"12345", ["value", NO_VALUE, b"1"]]

    assert [backend.get(key) for key in found] == found
    assert active_timer.counters == {1: 4, 2: 3, 3: 6}
    assert active_timer.counts == [0, 5]


@pytest.mark.parametrize(
    ("nanoseconds", "bucket"),
    [
        (0, 0),
        (CALL_BOUNDS[0], 0),
        (CALL_BOUNDS[0] + 1, 1),
        (CALL_BOUNDS[-1], len(CALL_BOUNDS) - 1),
        (CALL_BOUNDS[-1] + 1, len(CALL_BOUNDS)),
    ],
)
def test_round_trip_is_recorded_in_its_bucket(
    hot_path, active_timer, time, nanoseconds, bucket
) -> None:
    ask = hot_path.wrap_cache_call(
        lambda _: time.passes(nanoseconds), 1, KIND, count_nothing, count_nothing
    )
    time.passes(99)
    ask(Backend())
    time.passes(99)

    buckets = [0] * (len(CALL_BOUNDS) + 1)
    buckets[bucket] = 1
    assert active_timer.calls == {KIND: [nanoseconds, *buckets]}


def test_round_trip_that_raises_is_recorded(backend, active_timer, time) -> None:
    with pytest.raises(ConnectionError):
        backend.get(ConnectionError())
    backend.get("key")

    assert active_timer.calls[KIND][:2] == [0, 2]


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ((), 3),
        ((1, 2, "SELECT"), 3),
        ((1, 2, "INSERT"), 4),
        ((1, 2, "update"), 4),
        ((1, 2, "DELETE"), 4),
        ((1, 2, ""), 3),
        ((1, 2, b"INSERT"), 3),
        (("INSERT", "INSERT"), 3),
    ],
)
def test_call_is_recorded_by_its_statement(
    hot_path, active_timer, time, args, kind
) -> None:
    hot_path.wrap(lambda *_: time.passes(7), 0, 2, kinds=(3, 4))(*args)

    assert list(active_timer.calls) == [kind]
    assert active_timer.calls[kind][:2] == [7, 1]


def test_call_in_the_same_cell_is_part_of_its_caller(
    hot_path, active_timer, time
) -> None:
    inner = hot_path.wrap(lambda: time.passes(7), 0, 2, kinds=(3, 3))
    outer = hot_path.wrap(lambda: [inner(), inner()], 0, 2, kinds=(4, 4))

    outer()

    assert {kind: times[:2] for kind, times in active_timer.calls.items()} == {
        4: [14, 1]
    }


@pytest.mark.parametrize("kinds", [(1, 16), (-1, 2), (1, 10**30)])
def test_kind_out_of_range_is_refused(hot_path, kinds) -> None:
    with pytest.raises(ValueError, match="is not between 0 and 15"):
        hot_path.wrap(len, kinds=kinds)


@pytest.mark.parametrize("kinds", [3, (1,), (1, 2, 3), [1, 2], ("1", 2)])
def test_kinds_are_a_pair_of_numbers(hot_path, kinds) -> None:
    with pytest.raises(TypeError):
        hot_path.wrap(len, kinds=kinds)


def test_nested_backend_calls_count_once(backend, hot_path, active_timer) -> None:
    class Outer(type(backend)):
        get_multi = hot_path.wrap_cache_call(
            lambda self, keys: [self.get(key) for key in keys],
            1,
            KIND,
            hot_path.count_cache_get(NO_VALUE),
            print,
        )

    assert Outer().get_multi(["a", "b"]) == ["a", "b"]
    assert active_timer.counts == [0, 1]
    assert active_timer.calls[KIND][1] == 1
    assert active_timer.counters == {1: 2}


def test_error_hook_runs_with_the_cache_layer(backend, active_timer) -> None:
    gone = ConnectionError("gone")

    with pytest.raises(ConnectionError) as raised:
        backend.get(gone)

    assert raised.value is gone
    assert backend.failed == [(Backend._keylag_layer, gone)]
    assert active_timer.counters == {}
    assert active_timer.counts == [0, 1]


def test_object_without_layer_is_called(hot_path, active_timer) -> None:
    ask = hot_path.wrap_cache_call(
        lambda thing: thing, 1, KIND, hot_path.count_cache_get(NO_VALUE), print
    )

    assert ask(3) == 3
    assert active_timer.counts == [0, 0]


def test_events_record_cache_calls(backend, active_timer, time) -> None:
    active_timer.records_events = True
    time.passes(5)
    backend.get("value")

    (started_at, cell, call), counter_values, (ended, left, nothing) = (
        active_timer.events
    )
    assert (started_at, cell, call) == (
        active_timer.last_tick,
        active_timer.current_cell,
        Backend.get,
    )
    assert counter_values == (None, 1)
    assert (ended, left, nothing) == (
        active_timer.last_tick,
        active_timer.current_cell,
        None,
    )


def test_bytes_received_count_for_the_current_layer(
    backend, hot_path, active_timer
) -> None:
    receive = hot_path.wrap(lambda *_: None, before=hot_path.count_bytes_received(1))
    receive("self", 7)
    active_timer.cache_layer = Backend._keylag_layer
    receive("self", 7)
    receive("self", b"123")
    receive("self")
    active_timer.cache_layer = None

    assert active_timer.counters == {3: 10}


def test_cache_hook_without_layer_is_a_fault(hot_path, active_timer) -> None:
    faults: list[Any] = []
    hot_path.set_fault_handler(faults.append)
    find = hot_path.wrap(lambda *_: "found", after=hot_path.count_cache_get(None))

    assert find() == "found"
    assert len(faults) == 1
    assert active_timer.counters == {}


def test_without_a_request_nothing_is_counted(backend, hot_path) -> None:
    hot_path.timer_var.set(None)

    assert backend.get("value") == "value"

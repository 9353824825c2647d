"""Neither part crashes, whatever Python code does with its objects."""

from __future__ import annotations

import contextvars
import copy
import gc
import inspect
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import types
import weakref
from collections.abc import Iterator
from contextlib import suppress
from functools import partial, wraps
from typing import Any

import pytest
from conftest import NEEDS_C
from differential import Layer

from keylag_otel.response import ResponseRecorder

#: The same with each release of Keystone.
pytestmark = pytest.mark.newest

HUGE = 10**30
LAYER = Layer(hit=1, miss=2, received=3)


@pytest.fixture
def timer(hot_path) -> Any:
    return hot_path.RequestTimer("GET", 3, 2)


@pytest.fixture
def active_timer(hot_path, timer) -> Iterator[Any]:
    hot_path.timer_var.set(timer)
    yield timer
    hot_path.timer_var.set(None)


@pytest.fixture
def faults(hot_path) -> list[Any]:
    reported: list[Any] = []
    hot_path.set_fault_handler(reported.append)
    return reported


# Arguments of a timer.


@pytest.mark.parametrize("cell", [10**8, 256 + 7, -1, HUGE, -HUGE])
def test_cells_are_masked_to_eight_bits(hot_path, time_source, timer, cell) -> None:
    timer.current_cell = cell
    time_source.passes(5)
    timer.accumulate()

    assert timer.current_cell == cell & 255
    assert timer.self_times() == {cell & 255: 5}
    assert (timer.switch(cell), timer.current_cell) == (cell & 255, cell & 255)
    assert hot_path.RequestTimer("GET", cell, 2).current_cell == cell & 255
    assert hot_path.start_timer({}, "_OTHER", cell, 2, {}).current_cell == cell & 255


@pytest.mark.parametrize("cell", [None, 1.5, "1"])
def test_invalid_cells_raise(hot_path, timer, cell) -> None:
    with pytest.raises(TypeError):
        timer.current_cell = cell
    with pytest.raises(TypeError):
        timer.switch(cell)
    with pytest.raises(TypeError):
        hot_path.RequestTimer("GET", cell, 2)

    assert timer.current_cell == 3


def test_wrapper_masks_cells_to_eight_bits(hot_path, active_timer) -> None:
    cells = []
    hot_path.wrap(lambda: cells.append(active_timer.current_cell), 0xF00, 0x712)()
    with hot_path.wrap_context_manager(partial(open, os.devnull), -HUGE, HUGE + 9)():
        cells.append(active_timer.current_cell)

    assert cells == [0x12, (3 & -HUGE | HUGE + 9) & 255]


@pytest.mark.parametrize("counts", [-1, 17, 10**4, HUGE, -HUGE])
def test_there_are_at_most_sixteen_counts(hot_path, counts) -> None:
    for make in (
        lambda: hot_path.RequestTimer("GET", 3, counts),
        lambda: hot_path.start_timer({}, "_OTHER", 3, counts, {}),
        lambda: hot_path.Aggregate([1], counts),
        lambda: hot_path.Aggregator([1], counts),
    ):
        with pytest.raises(ValueError, match="is not between 0 and 16"):
            make()


@pytest.mark.parametrize("index", [-1, 2, HUGE, -HUGE])
def test_invalid_count_index_raises(timer, index) -> None:
    with pytest.raises(IndexError):
        timer.count(index)

    assert timer.counts == [0, 0]


@pytest.mark.parametrize("number", [-1, 1 << 30, HUGE, -HUGE])
def test_invalid_counter_id_raises(hot_path, timer, number) -> None:
    for increment in (timer.increment, hot_path.Aggregator([], 0).increment):
        with pytest.raises(ValueError, match=r".+"):
            increment(number)
        with pytest.raises(TypeError):
            increment("7")

    assert timer.counters == {}


def test_sum_beyond_64_bits_raises(hot_path, timer) -> None:
    most = (1 << 63) - 1
    timer.increment(7, most)
    with pytest.raises(OverflowError):
        timer.increment(7)
    with pytest.raises(OverflowError):
        timer.increment(7, HUGE)
    aggregator = hot_path.Aggregator([], 0)
    aggregator.add(timer, 200)
    with pytest.raises(OverflowError):
        aggregator.increment(7)

    assert timer.counters == aggregator.counters == {7: most}


def test_timer_properties_are_copies(hot_path, timer) -> None:
    timer.records_events = True
    timer.increment(7)
    for given in (timer.counts, timer.events, timer.counters):
        given.clear()
    for name in ("counts", "events", "counters", "last_tick", "started_at", "wall_ns"):
        with pytest.raises(AttributeError):
            setattr(timer, name, 5)

    assert (timer.counts, timer.counters, timer.events) == ([0, 0], {7: 1}, [(None, 7)])
    with pytest.raises(TypeError):
        timer.records_events = 1


def test_attributes_cannot_be_deleted(hot_path, timer) -> None:
    names = (
        "method route auth_method environ missed_region cache_layer last_layer "
        "current_cell records_events is_traced last_tick"
    )
    for name in names.split():
        with pytest.raises(AttributeError):
            delattr(timer, name)

    aggregator = hot_path.Aggregator([], 2)
    aggregator.on_request = print
    del aggregator.on_request
    aggregator.add(timer, 200)
    assert aggregator.on_request is None


@pytest.mark.parametrize("read", ["soon", None, 1.5, HUGE, 1 / 1j])
def test_failing_time_source_reads_0(hot_path, time_source, read) -> None:
    del time_source
    hot_path.set_time_source(lambda: read)
    timer = hot_path.RequestTimer("GET", 3, 2)
    hot_path.set_time_source(lambda: 1 // 0)
    timer.accumulate()
    hot_path.set_time_source(5)
    timer.accumulate()

    assert (timer.last_tick, timer.wall_ns) == (0, 0)


def test_time_source_may_replace_itself(hot_path, time_source) -> None:
    class Reader:
        def __call__(self) -> int:
            hot_path.set_time_source(time_source)
            gc.collect()
            return 7

    hot_path.set_time_source(Reader())
    assert hot_path.RequestTimer("GET", 3, 2).last_tick == 7


# Uninitialized, reinitialized and misbehaving objects.


@pytest.mark.parametrize("name", ["RequestTimer", "Aggregate", "Aggregator"])
def test_uninitialized_objects_do_not_crash(hot_path, name) -> None:
    kind = getattr(hot_path, name)
    try:
        made = kind.__new__(kind)
    except TypeError:
        return
    use_everything(made)


def use_everything(thing: Any) -> None:
    """Read, call and delete all attributes, ignoring exceptions."""
    anything = suppress(Exception)
    for name in dir(thing):
        with anything:
            found = getattr(thing, name)
            found()
            found(thing)
        with anything:
            delattr(thing, name)
    for use in (next, iter, list, repr, hash, copy.copy, copy.deepcopy, pickle.dumps):
        with anything:
            use(thing)


def test_failed_init_leaves_aggregate_unchanged(hot_path, timer) -> None:
    aggregate = hot_path.Aggregate([10], 2)
    aggregate.add(timer)
    for wrong in (([1], 10**4), ([2, 1], 2), (range(100), 1), ([1], -1), ("a", 1)):
        with suppress(ValueError, TypeError):
            aggregate.__init__(*wrong)

        assert aggregate.counts == [0, 0]
        assert sum(aggregate.buckets) == 1
        assert aggregate.self_times() == timer.self_times()


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        ([2, 1], ValueError),
        (range(17), ValueError),
        (None, TypeError),
        ([1.5], TypeError),
        ("12", TypeError),
        ([HUGE], OverflowError),
    ],
)
def test_invalid_bounds_raise(hot_path, bounds, error) -> None:
    for kind in (hot_path.Aggregate, hot_path.Aggregator):
        with pytest.raises(error):
            kind(bounds, 2)


def test_bounds_may_change_while_they_are_read(hot_path, timer) -> None:
    class Bounds(list[int]):
        def __len__(self) -> int:
            return 10**6

        def __getitem__(self, index: Any) -> Any:
            self.clear()
            return index

        def __iter__(self) -> Iterator[int]:
            yield 1
            self.clear()
            yield 2

    bounds = Bounds([1, 2, 3])
    aggregate = hot_path.Aggregate(bounds, 2)
    aggregate.add(timer)

    assert len(aggregate.buckets) == 3


def test_aggregator_subclass_without_init_does_not_crash(hot_path, timer) -> None:
    class Silent(hot_path.Aggregator):
        def __init__(self) -> None:
            pass

        def __del__(self) -> None:
            for use in (self.by_key, self.clear):
                with suppress(AttributeError):
                    use()

    with suppress(AttributeError):
        Silent().add(timer, 200)
    Silent()
    itself = Silent()
    itself.on_request, itself.itself = itself, itself
    del itself
    gc.collect()


# Objects that change during a call.


def test_events_may_grow_while_they_are_read(hot_path, timer) -> None:
    """A finalizer that runs while the list is built records more events."""

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            for _ in range(3000):
                timer.annotate("late", object())

    timer.records_events = True
    for _ in range(6000):  # more than Python keeps tuples for without an allocation
        timer.increment(7)
    kept = gc.get_threshold()
    Cycle()
    gc.set_threshold(1)
    events = timer.events
    gc.set_threshold(*kept)

    assert events[:6000] == [(None, 7)] * 6000
    assert {type(event) for event in events} == {tuple}
    assert len(timer.events) == 9000


class SideEffectKey:
    """A key with a side effect when it is hashed or compared."""

    def __init__(self, side_effect: Any) -> None:
        self._meddle = side_effect

    def __hash__(self) -> int:
        self._meddle()
        return 7

    def __eq__(self, other: object) -> bool:
        self._meddle()
        return isinstance(other, SideEffectKey)


def test_aggregator_may_be_cleared_while_a_key_is_compared(hot_path) -> None:
    aggregator = hot_path.Aggregator([1], 2)

    def clear() -> None:
        aggregator.clear()
        gc.collect()

    for status in range(100, 110):
        timer = hot_path.RequestTimer("GET", 3, 2)
        timer.route = SideEffectKey(clear)
        aggregator.add(timer, status)
        aggregator.by_key()


@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="a tuple remembers its hash: no key is asked"
)
def test_aggregator_may_grow_while_it_is_read(hot_path, timer) -> None:
    aggregator = hot_path.Aggregator([1], 2)
    status = iter(range(10**6))
    other = hot_path.RequestTimer("GET", 3, 2)

    def add() -> None:
        aggregator.increment(7)
        aggregator.add(other, next(status))

    timer.route = SideEffectKey(add)
    aggregator.add(timer, 200)
    before = len(aggregator.by_key())

    assert len(aggregator.by_key()) > before
    assert aggregator.counters[7] > 0


def test_on_request_may_replace_itself(hot_path, timer) -> None:
    aggregator = hot_path.Aggregator([1], 2)

    class Handler:
        def __call__(self, *_: Any) -> None:
            aggregator.on_request = None
            gc.collect()

    aggregator.on_request = Handler()
    aggregator.add(timer, 200)

    assert aggregator.on_request is None


def test_methods_may_change_while_one_is_looked_up(hot_path) -> None:
    environ: dict[str, Any] = {}
    methods: dict[Any, str] = {}

    def clear() -> None:
        environ.clear()
        methods.clear()
        gc.collect()

    environ["REQUEST_METHOD"] = SideEffectKey(clear)
    methods[str(HUGE)] = "GET"
    assert hot_path.start_timer(methods, "_OTHER", 3, 2, environ).method == "_OTHER"


@pytest.mark.parametrize("environ", [None, [], "environ", {}])
def test_an_environment_may_be_anything(hot_path, environ) -> None:
    assert (
        hot_path.start_timer({"GET": "GET"}, "_OTHER", 3, 2, environ).method == "_OTHER"
    )
    with pytest.raises(TypeError):
        hot_path.start_timer([], "_OTHER", 3, 2, environ)


def test_cache_layer_may_be_removed_during_a_call(
    hot_path, active_timer, faults
) -> None:
    owner = types.SimpleNamespace(_keylag_layer=Layer(5))

    def call(_: Any) -> bytes:
        owner._keylag_layer = active_timer.cache_layer = None
        gc.collect()
        return b"1234"

    ask = hot_path.wrap_cache_call(call, 1, 0, hot_path.count_cache_get(None), print)

    assert ask(owner) == b"1234"
    assert active_timer.counters == {}
    assert len(faults) == 1


@pytest.mark.parametrize("hit", [None, "text", 1.5, 2**70, -1])
def test_wrong_layer_is_a_fault(hot_path, active_timer, faults, hit) -> None:
    active_timer.cache_layer = Layer(hit=hit)

    assert hot_path.wrap(lambda: 7, after=hot_path.count_cache_get(None))() == 7

    assert (active_timer.counters, len(faults)) == ({}, 1)


def test_nested_list_counts_as_one_value(hot_path, active_timer, faults) -> None:
    itself: list[Any] = [b"1"]
    itself.append(itself)
    active_timer.cache_layer = LAYER
    hot_path.wrap(lambda: itself, after=hot_path.count_cache_get(None))()

    assert (active_timer.counters, faults) == ({1: 2, 3: 1}, [])


def test_add_timing_may_replace_itself(hot_path, timer) -> None:
    recorder = ResponseRecorder(
        timer, lambda *given: given, hot_path.Aggregator([], 2), None, None
    )

    class Timing:
        def __call__(self, *_: Any) -> list[Any]:
            recorder.add_timing = None
            gc.collect()
            return ["timed"]

    recorder.add_timing = Timing()
    assert recorder("200 OK", []) == ("200 OK", ["timed"])


def test_body_may_iterate_its_own_response(hot_path, timer) -> None:
    class Body:
        def __iter__(self) -> Any:
            assert next(recorder, "read") in {"one", "read"}
            return iter(["one", "two"])

    calls = iter([True])
    body = Body()
    recorder = ResponseRecorder(
        timer, None, hot_path.Aggregator([], 2), lambda _: None, None
    )
    body.__class__.__iter__ = lambda _: (  # type: ignore[method-assign]
        next(calls, False) and next(recorder, None),
        iter(["one", "two"]),
    )[1]
    recorder.serve(lambda *_: body)

    assert list(recorder)[-1] == "two"
    recorder.close()


def test_unserved_response_has_no_chunks(hot_path, timer) -> None:
    aggregator = hot_path.Aggregator([], 2)
    recorder = ResponseRecorder(timer, None, aggregator, lambda _: None, None)

    assert list(recorder) == []
    assert recorder.close() is None
    assert len(aggregator.by_key()) == 1


@pytest.mark.parametrize("status", ["99999999999", "-12 x", "1", "", None, 200, [2]])
def test_invalid_status_is_a_fault(hot_path, timer, faults, status) -> None:
    ended = []
    aggregator = types.SimpleNamespace(add=lambda _, status: ended.append(status))
    recorder = ResponseRecorder(timer, lambda *_: None, aggregator, lambda _: "/", None)
    recorder(status, [])
    recorder.close()

    assert ended == ([999] if status == "99999999999" else [500])
    assert len(faults) == (status != "99999999999")


# Deep recursion.

#: Nesting depth.  Python 3.14 limits recursion by the size of the stack.
DEEP = 20_000 if sys.version_info < (3, 14) else 1_000_000


def chain(depth: int, link: Any, end: Any) -> Any:
    for _ in range(depth):
        end = link(end)
    return end


@pytest.mark.parametrize("kind", ["wrap", "wrap_context_manager", "wrap_cache_call"])
def test_nested_wrappers_raise_recursion_error(hot_path, timer, kind) -> None:
    link = {
        "wrap": hot_path.wrap,
        "wrap_context_manager": lambda call: hot_path.wrap_context_manager(
            call, 255, 0
        ),
        "wrap_cache_call": lambda call: hot_path.wrap_cache_call(
            call, 0, 0, None, None
        ),
    }[kind]
    deep = chain(DEEP, link, lambda: None)
    with pytest.raises(RecursionError):
        deep()
    with pytest.raises(AttributeError):
        deep.no_such_name  # noqa: B018
    if hot_path.__name__.endswith("_native"):
        with pytest.raises(RecursionError):
            repr(deep)
        del deep  # without a recursion of its own


def test_deep_reference_chains_are_freed_without_recursion(hot_path) -> None:
    def clocks(inner: Any) -> Any:
        outer = hot_path.RequestTimer("GET", 3, 2)
        outer.cache_layer = inner
        return outer

    for link in (
        *(clocks, hot_path.count_cache_get),
        lambda inner: ResponseRecorder(
            hot_path.RequestTimer("GET", 3, 2), inner, None, None, None
        ),
    ):
        deep = chain(20_000, link, None)
        del deep


def test_body_that_is_its_own_response_raises_recursion_error(hot_path, timer) -> None:
    recorder = ResponseRecorder(
        timer, None, hot_path.Aggregator([], 2), lambda _: None, None
    )
    recorder.serve(lambda _, start: start)

    with pytest.raises(RecursionError):
        next(recorder)
    with pytest.raises(RecursionError):
        recorder.close()


def test_nested_responses_raise_recursion_error(hot_path, timer) -> None:
    link = partial(_recorder, hot_path, timer)
    with pytest.raises(RecursionError):
        chain(20_000, link, print)("200 OK", [])


def _recorder(hot_path: Any, timer: Any, start: Any) -> Any:
    return ResponseRecorder(timer, start, None, None, None)


# Arguments of hooks.


def test_hooks_accept_any_arguments(hot_path, active_timer, faults) -> None:
    active_timer.cache_layer = LAYER
    owner = types.SimpleNamespace(_keylag_layer=LAYER, name="n", rowcount=2)
    hooks = (
        *(
            hot_path.count_cache_get(None),
            hot_path.count_bytes_received(2),
            hot_path.mark_miss(),
        ),
        hot_path.count_memoized_call(owner, lambda: (4, 5, 8, None)),
        hot_path.record_statement(1, "system", "text"),
        hot_path.count_statement({}, lambda _: (6, 7)),
    )
    for hook in hooks:
        for event in ("before", "after", "on_error"):
            hot_path.wrap(len, **{event: hook})([1])
        hook(active_timer, (owner, owner, "text"), None)
        for wrong in (
            (),
            (None, (), None),
            (active_timer,),
            (active_timer, None, None, 5),
        ):
            with suppress(TypeError, AttributeError, LookupError):
                hook(*wrong)
    assert set(active_timer.counters) <= set(range(1, 9))
    assert set(faults) <= {len}


@pytest.mark.parametrize(
    "numbers", [None, 5, (), (1,), (1, 2, 3), ("a", "b"), (-1, -1)]
)
def test_invalid_counter_ids_are_a_fault(
    hot_path, active_timer, faults, numbers
) -> None:
    for hook in (
        hot_path.count_memoized_call(None, lambda: numbers),
        hot_path.count_statement({"text": numbers}, lambda _: numbers),
    ):
        cursor = types.SimpleNamespace(rowcount=0)
        hot_path.wrap(lambda *_: None, after=hook)(None, cursor, "text")

    assert len(faults) == 2


def test_fault_handler_may_fail(hot_path, active_timer) -> None:
    hot_path.set_fault_handler(lambda _: 1 / 0)
    assert hot_path.wrap(len, before=lambda *_: 1 / 0)([1]) == 1
    hot_path.set_fault_handler(5)
    assert hot_path.wrap(len, after=lambda *_: 1 / 0)([1]) == 1

    class Handler:
        def __call__(self, _: Any) -> None:
            hot_path.set_fault_handler(bool)
            gc.collect()

    hot_path.set_fault_handler(Handler())
    assert hot_path.wrap(len, before=lambda *_: 1 / 0)([1]) == 1


def test_counts_beyond_those_of_the_timer_are_ignored(
    hot_path, active_timer, faults
) -> None:
    owner = types.SimpleNamespace(_keylag_layer=LAYER)
    hot_path.wrap_cache_call(
        lambda _: "found", 7, 0, hot_path.count_cache_get(None), print
    )(owner)
    hot_path.wrap(len, before=hot_path.record_statement(15, "system", "text"))([])
    for wrong in (-1, 16, HUGE):
        with pytest.raises(ValueError, match="is not between 0 and 15"):
            hot_path.wrap_cache_call(len, wrong, 0, print, print)
        with pytest.raises(ValueError, match="is not between 0 and 15"):
            hot_path.wrap_cache_call(len, 0, wrong, print, print)
        with pytest.raises(ValueError, match="is not between 0 and 15"):
            hot_path.record_statement(wrong, "system", "text")
    with pytest.raises(ValueError, match="argument index"):
        hot_path.count_bytes_received(-1)

    assert (active_timer.counts, active_timer.counters, faults) == ([0, 0], {1: 1}, [])


@pytest.mark.parametrize("layer", [None, 1 / 1j])
def test_backend_without_layer_is_called(hot_path, active_timer, layer) -> None:
    class Owner:
        @property
        def _keylag_layer(self) -> Any:
            if layer is None:
                return None
            raise ZeroDivisionError

    ask = hot_path.wrap_cache_call(
        lambda *found: found, 0, 0, hot_path.count_cache_get(None), print
    )
    owner = Owner()

    assert (ask(owner), ask()) == ((owner,), ())
    assert active_timer.counts == [0, 0]


def test_exit_requires_three_arguments(hot_path, active_timer) -> None:
    opened = hot_path.wrap_context_manager(open, 0, 7)(os.devnull)
    opened.__enter__()
    for wrong in ((), (None,), (None,) * 2, (None,) * 4):
        with pytest.raises(TypeError):
            opened.__exit__(*wrong)
    with pytest.raises(TypeError):
        opened.__exit__(kind=None, error=None, traceback=None)
    assert active_timer.current_cell == 7
    opened.__exit__(None, None, None)
    assert active_timer.current_cell == 3


@NEEDS_C
def test_internal_types_cannot_be_instantiated(hot_path, active_timer) -> None:
    if hot_path.__name__.endswith("pure"):
        return
    for made in (
        hot_path.count_cache_get(None),
        hot_path.wrap_context_manager(open, 0, 7)(os.devnull),
    ):
        with pytest.raises(TypeError, match="cannot create"):
            type(made)()
        with pytest.raises(TypeError):
            object.__new__(type(made))
        with pytest.raises(TypeError):
            type(made).new = 1


# The wrapper of a function behaves like it.


def original(one: int, *, two: int = 2) -> int:
    """Add."""
    return one + two


watched_here: Any = None


def test_wrapper_of_a_function_behaves_like_it(hot_path) -> None:
    original.own = ["own"]  # type: ignore[attr-defined]
    wrapper = hot_path.wrap(original)
    wrapper.more = 1

    assert isinstance(wrapper, types.FunctionType)
    assert inspect.isfunction(wrapper)
    assert inspect.isroutine(wrapper)
    assert not inspect.isclass(wrapper)
    assert not inspect.iscoroutinefunction(wrapper)
    assert inspect.signature(wrapper) == inspect.signature(original)
    assert inspect.unwrap(wrapper) is wrapper.__wrapped__ is original
    names = ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__")
    assert [getattr(wrapper, name) for name in (*names, "own")] == [
        getattr(original, name) for name in (*names, "own")
    ]
    assert not hasattr(original, "more")
    assert {"own", "more", "__wrapped__"} <= vars(wrapper).keys()
    assert wraps(wrapper)(lambda: 0).__qualname__ == "original"
    assert weakref.ref(wrapper)() is wrapper
    assert copy.copy(wrapper) is copy.deepcopy(wrapper) is wrapper
    assert {wrapper: 1}[wrapper]
    assert wrapper != original


def test_wrapper_is_pickled_by_name(hot_path, monkeypatch) -> None:
    wrapper = hot_path.wrap(original)
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(wrapper)
    monkeypatch.setattr(sys.modules[__name__], "original", wrapper)

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(wrapper, protocol)) is wrapper  # noqa: S301


def test_weak_reference_to_wrapper_dies_with_it(hot_path) -> None:
    ended = []
    wrapper = hot_path.wrap(lambda: None)
    kept = weakref.ref(wrapper, ended.append)
    wrapper.itself = wrapper
    del wrapper
    gc.collect()

    assert (kept(), ended) == (None, [kept])


@pytest.mark.parametrize("call", [len, int, partial(int, "7"), "".join])
def test_callables_other_than_functions_can_be_wrapped(
    hot_path, active_timer, call
) -> None:
    wrapper = hot_path.wrap(call)

    assert not inspect.isclass(wrapper)
    assert not inspect.iscoroutinefunction(wrapper)
    assert copy.deepcopy(wrapper) is wrapper
    with pytest.raises(TypeError):
        wrapper(1, 2, 3, 4)


# Threads, interpreters and builds.


def test_thread_that_inherits_the_context_is_not_timed(hot_path, active_timer) -> None:
    """A thread of Python 3.14 starts with a copy of its maker's context."""
    inside = []
    call = hot_path.wrap(lambda: inside.append(hot_path.current_timer()), 0, 7)
    with_context = hot_path.wrap_context_manager(partial(open, os.devnull), 0, 7)
    active_timer.records_events = True

    def work() -> None:
        call()
        with with_context():
            call()
        hot_path.wrap_cache_call(
            lambda _: None, 0, 0, hot_path.count_cache_get(None), print
        )(types.SimpleNamespace(_keylag_layer=LAYER))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join()

    assert inside == [None, None]
    assert (active_timer.events, active_timer.counts) == ([], [0, 0])
    assert hot_path.current_timer() is active_timer


def test_another_thread_may_iterate_the_response(hot_path, timer) -> None:
    seen = []

    def parts() -> Iterator[Any]:
        seen.append(hot_path.current_timer())
        yield b"part"

    recorder = ResponseRecorder(
        timer, None, hot_path.Aggregator([], 2), lambda _: None, None
    )
    recorder.serve(lambda *_: parts())
    for step in (lambda: next(recorder), recorder.close):
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()

    assert seen == [timer]
    assert hot_path.current_timer() is None


def test_inherited_timer_ends_with_its_request(hot_path, timer) -> None:
    """A pool thread keeps the context of the request in which it was started."""
    recorder = ResponseRecorder(
        timer, None, hot_path.Aggregator([], 2), lambda _: None, None
    )
    contexts = []

    def application(*_: Any) -> list[Any]:
        contexts.append(contextvars.copy_context())
        return []

    recorder.serve(application)

    assert contexts[0].run(hot_path.timer_var.get) is timer
    assert contexts[0].run(hot_path.current_timer) is None


def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


#: Messages that refuse a subinterpreter: our own, and that of Python 3.12 and later.
REFUSALS = ("main interpreter", "does not support loading in subinterpreters")


@NEEDS_C
def test_subinterpreter_uses_the_pure_part_and_logs_why() -> None:
    interpreters = pytest.importorskip(
        "_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters"
    )
    del interpreters
    done = run(
        f"""
        import sys
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        from keylag_otel import request_timer
        assert request_timer.IS_NATIVE and request_timer.NATIVE_IMPORT_ERROR is None
        inner = '''
        from keylag_otel import request_timer
        assert not request_timer.IS_NATIVE
        error = request_timer.NATIVE_IMPORT_ERROR
        assert any(words in error for words in {REFUSALS}), error
        request_timer.wrap(len)([])
        '''
        for _ in range(2):
            failed = interpreters.run_string(interpreters.create(), inner)
            assert failed is None, failed
        assert request_timer.wrap(len)([1]) == 1
        """
    )

    assert (done.returncode, done.stderr.count("keylag times calls in Python")) == (
        0,
        2,
    ), done.stderr


@NEEDS_C
def test_native_part_can_be_imported_again() -> None:
    done = run(
        """
        import sys
        from keylag_otel import _native as first
        wrapper = first.wrap(len)
        timer = first.RequestTimer("GET", 3, 2)
        del sys.modules["keylag_otel._native"]
        from importlib import import_module
        second = import_module("keylag_otel._native")
        assert second is not first and second.timer_var is first.timer_var
        second.timer_var.set(timer)
        assert wrapper([1]) == 1 and second.current_timer() is timer
        """
    )

    assert done.returncode == 0, done.stderr


@NEEDS_C
@pytest.mark.skipif(
    hasattr(sys, "gettotalrefcount"),
    reason="a debug build of Python aborts where its own frames find no memory",
)
def test_failing_allocations_raise_and_do_not_crash() -> None:
    """Let each allocation fail in turn: the only effect is an exception."""
    pytest.importorskip("_testcapi")
    done = run(
        """
        import _testcapi, types
        from keylag_otel import _native as hot_path
        owner = types.SimpleNamespace(_keylag_layer=(1, 2, 3), name="n", rowcount=2)
        def application(environ, start):
            start("200 OK", [])
            return iter([b"1"])
        class Body:
            def __enter__(self): return self
            def __exit__(self, *_): pass
        calls = (
            hot_path.wrap(lambda *_: b"1", 0, 7, lambda *_: 0,
                          hot_path.count_cache_get(None)),
            hot_path.wrap(lambda *_: b"1", 0, 7, hot_path.record_statement(0, "s", "t"),
                          hot_path.count_statement({}, lambda _: (1, 2))),
            hot_path.wrap_cache_call(lambda *_: 1 / 0, 0, 0,
                                     hot_path.count_cache_get(None), lambda *_: None),
        )
        body = hot_path.wrap_context_manager(Body, 0, 7, hot_path.mark_miss())
        def work():
            timer = hot_path.start_timer({}, "_", 3, 2, {"REQUEST_METHOD": "GET"})
            timer.records_events = True
            aggregator = hot_path.Aggregator([1, 2], 2)
            hot_path.timer_var.set(timer)
            try:
                for call in calls:
                    try:
                        call(owner, owner, "text")
                    except ZeroDivisionError:
                        pass
                with body():
                    for number in range(300):
                        timer.increment(number)
                aggregator.add(timer, 200)
                timer.events, timer.counters, timer.counts, aggregator.counters
                aggregator.by_key()
                hot_path.activate(timer)
                hot_path.deactivate(timer)
                hot_path.wrap(hot_path.wrap(len))
            finally:
                hot_path.timer_var.set(None)
        work()
        failures = 0
        for start in range(1200):
            _testcapi.set_nomemory(start, start + 1)
            try:
                work()
            except (MemoryError, SystemError, TypeError):
                failures += 1
            finally:
                _testcapi.remove_mem_hooks()
        assert failures > 100, failures
        """
    )

    assert done.returncode == 0, done.stderr

"""Whatever Python does with them, both halves answer, and neither ends the process."""

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

from keylag_otel.answer import Answer

HUGE = 10**30
LAYER = types.SimpleNamespace(hit=1, miss=2, received=3)


@pytest.fixture
def clock(half) -> Any:
    return half.Clock("GET", 3, 2)


@pytest.fixture
def running(half, clock) -> Iterator[Any]:
    half.active.set(clock)
    yield clock
    half.active.set(None)


@pytest.fixture
def faults(half) -> list[Any]:
    told: list[Any] = []
    half.tell_faults(told.append)
    return told


# What a clock is given.


@pytest.mark.parametrize("cell", [10**8, 256 + 7, -1, HUGE, -HUGE])
def test_of_a_cell_the_lowest_bits_count(half, half_time, clock, cell) -> None:
    clock.at = cell
    half_time.passes(5)
    clock.book()

    assert clock.at == cell & 255
    assert clock.spent() == {cell & 255: 5}
    assert (clock.turn(cell), clock.at) == (cell & 255, cell & 255)
    assert half.Clock("GET", cell, 2).at == cell & 255
    assert half.begun({}, "_OTHER", cell, 2, {}).at == cell & 255


@pytest.mark.parametrize("cell", [None, 1.5, "1"])
def test_what_is_no_cell_is_refused(half, clock, cell) -> None:
    with pytest.raises(TypeError):
        clock.at = cell
    with pytest.raises(TypeError):
        clock.turn(cell)
    with pytest.raises(TypeError):
        half.Clock("GET", cell, 2)

    assert clock.at == 3


def test_a_watched_call_uses_the_lowest_bits_too(half, running) -> None:
    cells = []
    half.watch(lambda: cells.append(running.at), 0xF00, 0x712)()
    with half.watch_body(partial(open, os.devnull), -HUGE, HUGE + 9)():
        cells.append(running.at)

    assert cells == [0x12, (3 & -HUGE | HUGE + 9) & 255]


@pytest.mark.parametrize("counts", [-1, 17, 10**4, HUGE, -HUGE])
def test_there_are_at_most_sixteen_counts(half, counts) -> None:
    for make in (
        lambda: half.Clock("GET", 3, counts),
        lambda: half.begun({}, "_OTHER", 3, counts, {}),
        lambda: half.Totals([1], counts),
        lambda: half.Sums([1], counts),
    ):
        with pytest.raises(ValueError, match="is not from 0 to 16"):
            make()


@pytest.mark.parametrize("index", [-1, 2, HUGE, -HUGE])
def test_a_count_that_is_not_there_is_refused(clock, index) -> None:
    with pytest.raises(IndexError):
        clock.count(index)

    assert clock.counts == [0, 0]


@pytest.mark.parametrize("number", [-1, 1 << 30, HUGE, -HUGE])
def test_a_number_that_is_no_tallys_is_refused(half, clock, number) -> None:
    for tally in (clock.tally, half.Sums([], 0).tally):
        with pytest.raises(ValueError, match=r".+"):
            tally(number)
        with pytest.raises(TypeError):
            tally("7")

    assert clock.tallies == {}


def test_a_sum_that_is_too_large_is_refused(half, clock) -> None:
    most = (1 << 63) - 1
    clock.tally(7, most)
    with pytest.raises(OverflowError):
        clock.tally(7)
    with pytest.raises(OverflowError):
        clock.tally(7, HUGE)
    sums = half.Sums([], 0)
    sums.add(clock, 200)
    with pytest.raises(OverflowError):
        sums.tally(7)

    assert clock.tallies == sums.tallies == {7: most}


def test_what_a_clock_gives_out_changes_nothing(half, clock) -> None:
    clock.writes = True
    clock.tally(7)
    for given in (clock.counts, clock.events, clock.tallies):
        given.clear()
    for name in ("counts", "events", "tallies", "mark", "began", "wall_ns"):
        with pytest.raises(AttributeError):
            setattr(clock, name, 5)

    assert (clock.counts, clock.tallies, clock.events) == ([0, 0], {7: 1}, [(None, 7)])
    with pytest.raises(TypeError):
        clock.writes = 1


def test_attributes_cannot_be_deleted(half, clock) -> None:
    names = "method route auth_method environ missed layer at writes kept mark"
    for name in names.split():
        with pytest.raises(AttributeError):
            delattr(clock, name)

    sums = half.Sums([], 2)
    sums.recorded = print
    del sums.recorded
    sums.add(clock, 200)
    assert sums.recorded is None


@pytest.mark.parametrize("read", ["soon", None, 1.5, HUGE, 1 / 1j])
def test_a_time_that_cannot_be_read_is_0(half, half_time, read) -> None:
    del half_time
    half.read_with(lambda: read)
    clock = half.Clock("GET", 3, 2)
    half.read_with(lambda: 1 // 0)
    clock.book()
    half.read_with(5)
    clock.book()

    assert (clock.mark, clock.wall_ns) == (0, 0)


def test_a_reader_may_replace_itself(half, half_time) -> None:
    class Reader:
        def __call__(self) -> int:
            half.read_with(half_time)
            gc.collect()
            return 7

    half.read_with(Reader())
    assert half.Clock("GET", 3, 2).mark == 7


# What is half-made, made again, or lies.


@pytest.mark.parametrize("name", ["Clock", "Totals", "Sums"])
def test_nothing_half_made_can_be_used(half, name) -> None:
    kind = getattr(half, name)
    try:
        made = kind.__new__(kind)
    except TypeError:
        return
    use_everything(made)


def use_everything(thing: Any) -> None:
    """Read, call and delete all that it has, whatever it says to that."""
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


def test_a_failed_init_leaves_totals_as_they_are(half, clock) -> None:
    totals = half.Totals([10], 2)
    totals.add(clock)
    for wrong in (([1], 10**4), ([2, 1], 2), (range(100), 1), ([1], -1), ("a", 1)):
        with suppress(ValueError, TypeError):
            totals.__init__(*wrong)

        assert totals.counts == [0, 0]
        assert sum(totals.buckets) == 1
        assert totals.spent() == clock.spent()


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
def test_bounds_ascend(half, bounds, error) -> None:
    for kind in (half.Totals, half.Sums):
        with pytest.raises(error):
            kind(bounds, 2)


def test_bounds_may_change_while_they_are_read(half, clock) -> None:
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
    totals = half.Totals(bounds, 2)
    totals.add(clock)

    assert len(totals.buckets) == 3


def test_sums_of_a_subclass_without_init_count_nothing(half, clock) -> None:
    class Silent(half.Sums):
        def __init__(self) -> None:
            pass

        def __del__(self) -> None:
            for use in (self.by_key, self.clear):
                with suppress(AttributeError):
                    use()

    with suppress(AttributeError):
        Silent().add(clock, 200)
    Silent()
    itself = Silent()
    itself.recorded, itself.itself = itself, itself
    del itself
    gc.collect()


# What changes under its hands.


def test_events_may_grow_while_they_are_read(half, clock) -> None:
    """A finaliser that the list of events makes room for writes more of them."""

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            for _ in range(3000):
                clock.note("late", object())

    clock.writes = True
    for _ in range(6000):  # more than Python keeps tuples for without an allocation
        clock.tally(7)
    kept = gc.get_threshold()
    Cycle()
    gc.set_threshold(1)
    events = clock.events
    gc.set_threshold(*kept)

    assert events[:6000] == [(None, 7)] * 6000
    assert {type(event) for event in events} == {tuple}
    assert len(clock.events) == 9000


class Meddles:
    """A key that does something each time when it is hashed or compared."""

    def __init__(self, meddle: Any) -> None:
        self._meddle = meddle

    def __hash__(self) -> int:
        self._meddle()
        return 7

    def __eq__(self, other: object) -> bool:
        self._meddle()
        return isinstance(other, Meddles)


def test_sums_may_be_cleared_while_a_key_is_compared(half) -> None:
    sums = half.Sums([1], 2)

    def clear() -> None:
        sums.clear()
        gc.collect()

    for status in range(100, 110):
        clock = half.Clock("GET", 3, 2)
        clock.route = Meddles(clear)
        sums.add(clock, status)
        sums.by_key()


@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="a tuple remembers its hash: no key is asked"
)
def test_sums_may_be_added_to_while_they_are_read(half, clock) -> None:
    sums = half.Sums([1], 2)
    status = iter(range(10**6))
    other = half.Clock("GET", 3, 2)

    def add() -> None:
        sums.tally(7)
        sums.add(other, next(status))

    clock.route = Meddles(add)
    sums.add(clock, 200)
    before = len(sums.by_key())

    assert len(sums.by_key()) > before
    assert sums.tallies[7] > 0


def test_who_is_told_may_be_replaced_meanwhile(half, clock) -> None:
    sums = half.Sums([1], 2)

    class Told:
        def __call__(self, *_: Any) -> None:
            sums.recorded = None
            gc.collect()

    sums.recorded = Told()
    sums.add(clock, 200)

    assert sums.recorded is None


def test_a_dictionary_may_change_while_the_method_is_looked_up(half) -> None:
    environ: dict[str, Any] = {}
    methods: dict[Any, str] = {}

    def clear() -> None:
        environ.clear()
        methods.clear()
        gc.collect()

    environ["REQUEST_METHOD"] = Meddles(clear)
    methods[str(HUGE)] = "GET"
    assert half.begun(methods, "_OTHER", 3, 2, environ).method == "_OTHER"


@pytest.mark.parametrize("environ", [None, [], "environ", {}])
def test_an_environment_may_be_anything(half, environ) -> None:
    assert half.begun({"GET": "GET"}, "_OTHER", 3, 2, environ).method == "_OTHER"
    with pytest.raises(TypeError):
        half.begun([], "_OTHER", 3, 2, environ)


def test_a_layer_may_go_while_it_is_asked(half, running, faults) -> None:
    class Layer:
        @property
        def hit(self) -> int:
            running.layer = None
            gc.collect()
            return 5

        received = 6

    owner = types.SimpleNamespace(_keylag_layer=None)
    ask = half.asked(lambda _: b"1234", 1, half.got(None), print)
    for layer in (Layer(), Layer()):
        owner._keylag_layer = layer
        del layer
        assert ask(owner) == b"1234"
        owner._keylag_layer = None

    assert running.tallies == {5: 2}
    assert len(faults) == 2


def test_a_list_may_shrink_while_it_is_counted(half, running) -> None:
    found = [object() for _ in range(100)]

    class Layer:
        @property
        def hit(self) -> int:
            found.clear()
            gc.collect()
            return 5

    running.layer = Layer()
    half.watch(lambda: found, after=half.got(None))()

    assert running.tallies == {5: 1}


def test_a_list_in_a_list_is_one_value(half, running, faults) -> None:
    itself: list[Any] = [b"1"]
    itself.append(itself)
    running.layer = LAYER
    half.watch(lambda: itself, after=half.got(None))()

    assert (running.tallies, faults) == ({1: 2, 3: 1}, [])


def test_a_breakdown_may_be_replaced_while_it_is_made(half, clock) -> None:
    answer = Answer(clock, lambda *given: given, half.Sums([], 2), None, None)

    class Timing:
        def __call__(self, *_: Any) -> list[Any]:
            answer.timing = None
            gc.collect()
            return ["timed"]

    answer.timing = Timing()
    assert answer("200 OK", []) == ("200 OK", ["timed"])


def test_a_body_may_read_its_own_answer(half, clock) -> None:
    class Body:
        def __iter__(self) -> Any:
            assert next(answer, "read") in {"one", "read"}
            return iter(["one", "two"])

    calls = iter([True])
    body = Body()
    answer = Answer(clock, None, half.Sums([], 2), lambda _: None, None)
    body.__class__.__iter__ = lambda _: (  # type: ignore[method-assign]
        next(calls, False) and next(answer, None),
        iter(["one", "two"]),
    )[1]
    answer.serve(lambda *_: body)

    assert list(answer)[-1] == "two"
    answer.close()


def test_an_answer_that_was_not_served_has_no_parts(half, clock) -> None:
    sums = half.Sums([], 2)
    answer = Answer(clock, None, sums, lambda _: None, None)

    assert list(answer) == []
    assert answer.close() is None
    assert len(sums.by_key()) == 1


@pytest.mark.parametrize("status", ["99999999999", "-12 x", "1", "", None, 200, [2]])
def test_what_is_no_status_is_a_fault(half, clock, faults, status) -> None:
    ended = []
    ledger = types.SimpleNamespace(add=lambda _, status: ended.append(status))
    answer = Answer(clock, lambda *_: None, ledger, lambda _: "/", None)
    answer(status, [])
    answer.close()

    assert ended == ([999] if status == "99999999999" else [500])
    assert len(faults) == (status != "99999999999")


# What is too deep.

#: Calls in calls.  Python 3.14 limits them by the size of the stack, not by a number.
DEEP = 20_000 if sys.version_info < (3, 14) else 1_000_000


def chain(depth: int, link: Any, end: Any) -> Any:
    for _ in range(depth):
        end = link(end)
    return end


@pytest.mark.parametrize("kind", ["watch", "watch_body", "asked"])
def test_watched_calls_in_watched_calls_have_an_end(half, clock, kind) -> None:
    link = {
        "watch": half.watch,
        "watch_body": lambda call: half.watch_body(call, 255, 0),
        "asked": lambda call: half.asked(call, 0, None, None),
    }[kind]
    deep = chain(DEEP, link, lambda: None)
    with pytest.raises(RecursionError):
        deep()
    with pytest.raises(AttributeError):
        deep.no_such_name  # noqa: B018
    if half.__name__.endswith("_watch"):
        with pytest.raises(RecursionError):
            repr(deep)
        del deep  # without a recursion of its own


def test_what_holds_each_other_is_given_back_without_a_recursion(half) -> None:
    def clocks(inner: Any) -> Any:
        outer = half.Clock("GET", 3, 2)
        outer.layer = inner
        return outer

    for link in (
        *(clocks, half.got, half.looked_up),
        lambda inner: Answer(half.Clock("GET", 3, 2), inner, None, None, None),
    ):
        deep = chain(20_000, link, None)
        del deep


def test_a_body_that_is_its_own_answer_has_an_end(half, clock) -> None:
    answer = Answer(clock, None, half.Sums([], 2), lambda _: None, None)
    answer.serve(lambda _, start: start)

    with pytest.raises(RecursionError):
        next(answer)
    with pytest.raises(RecursionError):
        answer.close()


def test_answers_that_start_each_other_have_an_end(half, clock) -> None:
    link = partial(_answer, half, clock)
    with pytest.raises(RecursionError):
        chain(20_000, link, print)("200 OK", [])


def _answer(half: Any, clock: Any, start: Any) -> Any:
    return Answer(clock, start, None, None, None)


# What notes are given.


def test_notes_can_be_called_and_told_of_anything(half, running, faults) -> None:
    running.layer = LAYER
    owner = types.SimpleNamespace(_keylag_layer=LAYER, name="n", rowcount=2)
    notes = (
        *(half.got(None), half.looked_up(None), half.received(2), half.computed()),
        half.memoized(owner, lambda: (4, 5)),
        half.stated(1, "system", "text"),
        half.executed({}, lambda _: (6, 7)),
    )
    for note in notes:
        for told in ("before", "after", "failed"):
            half.watch(len, **{told: note})([1])
        note(running, (owner, owner, "text"), None)
        for wrong in ((), (None, (), None), (running,), (running, None, None, 5)):
            with suppress(TypeError, AttributeError, LookupError):
                note(*wrong)
    assert set(running.tallies) <= {1, 2, 3, 4, 5, 6, 7}
    assert set(faults) == {len}


@pytest.mark.parametrize(
    "numbers", [None, 5, (), (1,), (1, 2, 3), ("a", "b"), (-1, -1)]
)
def test_numbers_that_are_none_are_a_fault(half, running, faults, numbers) -> None:
    for note in (
        half.memoized(None, lambda: numbers),
        half.executed({"text": numbers}, lambda _: numbers),
    ):
        cursor = types.SimpleNamespace(rowcount=0)
        half.watch(lambda *_: None, after=note)(None, cursor, "text")

    assert len(faults) == 2


def test_what_is_told_of_faults_may_fail(half, running) -> None:
    half.tell_faults(lambda _: 1 / 0)
    assert half.watch(len, before=lambda *_: 1 / 0)([1]) == 1
    half.tell_faults(5)
    assert half.watch(len, after=lambda *_: 1 / 0)([1]) == 1

    class Told:
        def __call__(self, _: Any) -> None:
            half.tell_faults(bool)
            gc.collect()

    half.tell_faults(Told())
    assert half.watch(len, before=lambda *_: 1 / 0)([1]) == 1


def test_a_count_that_the_clock_does_not_have_is_left_out(
    half, running, faults
) -> None:
    owner = types.SimpleNamespace(_keylag_layer=LAYER)
    half.asked(lambda _: "found", 7, half.got(None), print)(owner)
    half.watch(len, before=half.stated(15, "system", "text"))([])
    for wrong in (-1, 16, HUGE):
        with pytest.raises(ValueError, match="is not from 0 to 15"):
            half.asked(len, wrong, print, print)
        with pytest.raises(ValueError, match="is not from 0 to 15"):
            half.stated(wrong, "system", "text")
    with pytest.raises(ValueError, match="no argument"):
        half.received(-1)

    assert (running.counts, running.tallies, faults) == ([0, 0], {1: 1}, [])


@pytest.mark.parametrize("layer", [None, 1 / 1j])
def test_what_has_no_layer_or_cannot_say_is_asked(half, running, layer) -> None:
    class Owner:
        @property
        def _keylag_layer(self) -> Any:
            if layer is None:
                return None
            raise ZeroDivisionError

    ask = half.asked(lambda *found: found, 0, half.got(None), print)
    owner = Owner()

    assert (ask(owner), ask()) == ((owner,), ())
    assert running.counts == [0, 0]


def test_a_body_is_left_with_three_arguments(half, running) -> None:
    opened = half.watch_body(open, 0, 7)(os.devnull)
    opened.__enter__()
    for wrong in ((), (None,), (None,) * 2, (None,) * 4):
        with pytest.raises(TypeError):
            opened.__exit__(*wrong)
    with pytest.raises(TypeError):
        opened.__exit__(kind=None, error=None, traceback=None)
    assert running.at == 7
    opened.__exit__(None, None, None)
    assert running.at == 3


@NEEDS_C
def test_what_only_c_makes_cannot_be_made_from_python(half, running) -> None:
    if half.__name__.endswith("pure"):
        return
    for made in (half.got(None), half.watch_body(open, 0, 7)(os.devnull)):
        with pytest.raises(TypeError, match="cannot create"):
            type(made)()
        with pytest.raises(TypeError):
            object.__new__(type(made))
        with pytest.raises(TypeError):
            type(made).new = 1


# A watched function is like a function.


def original(one: int, *, two: int = 2) -> int:
    """Add."""
    return one + two


watched_here: Any = None


def test_a_watched_function_is_like_a_function(half) -> None:
    original.own = ["own"]  # type: ignore[attr-defined]
    watched = half.watch(original)
    watched.more = 1

    assert isinstance(watched, types.FunctionType)
    assert inspect.isfunction(watched)
    assert inspect.isroutine(watched)
    assert not inspect.isclass(watched)
    assert not inspect.iscoroutinefunction(watched)
    assert inspect.signature(watched) == inspect.signature(original)
    assert inspect.unwrap(watched) is watched.__wrapped__ is original
    names = ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__")
    assert [getattr(watched, name) for name in (*names, "own")] == [
        getattr(original, name) for name in (*names, "own")
    ]
    assert not hasattr(original, "more")
    assert {"own", "more", "__wrapped__"} <= vars(watched).keys()
    assert wraps(watched)(lambda: 0).__qualname__ == "original"
    assert weakref.ref(watched)() is watched
    assert copy.copy(watched) is copy.deepcopy(watched) is watched
    assert {watched: 1}[watched]
    assert watched != original


def test_a_watched_function_is_pickled_by_its_name(half, monkeypatch) -> None:
    watched = half.watch(original)
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(watched)
    monkeypatch.setattr(sys.modules[__name__], "original", watched)

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(watched, protocol)) is watched  # noqa: S301


def test_a_weak_reference_ends_with_the_watched_function(half) -> None:
    ended = []
    watched = half.watch(lambda: None)
    kept = weakref.ref(watched, ended.append)
    watched.itself = watched
    del watched
    gc.collect()

    assert (kept(), ended) == (None, [kept])


@pytest.mark.parametrize("call", [len, int, partial(int, "7"), "".join])
def test_what_is_no_function_can_be_watched(half, running, call) -> None:
    watched = half.watch(call)

    assert not inspect.isclass(watched)
    assert not inspect.iscoroutinefunction(watched)
    assert copy.deepcopy(watched) is watched
    with pytest.raises(TypeError):
        watched(1, 2, 3, 4)


# Threads, interpreters and builds.


def test_a_thread_that_inherits_a_request_books_nothing_of_its_own(
    half, running
) -> None:
    """A thread of Python 3.14 starts with a copy of its maker's context."""
    inside = []
    call = half.watch(lambda: inside.append(half.running()), 0, 7)
    with_body = half.watch_body(partial(open, os.devnull), 0, 7)
    running.writes = True

    def work() -> None:
        call()
        with with_body():
            call()
        half.asked(lambda _: None, 0, half.got(None), print)(
            types.SimpleNamespace(_keylag_layer=LAYER)
        )

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join()

    assert inside == [None, None]
    assert (running.events, running.counts) == ([], [0, 0])
    assert half.running() is running


def test_another_thread_may_send_what_a_request_began(half, clock) -> None:
    seen = []

    def parts() -> Iterator[Any]:
        seen.append(half.running())
        yield b"part"

    answer = Answer(clock, None, half.Sums([], 2), lambda _: None, None)
    answer.serve(lambda *_: parts())
    for step in (lambda: next(answer), answer.close):
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()

    assert seen == [clock]
    assert half.running() is None


def test_what_was_inherited_of_a_request_is_over_when_it_is(half, clock) -> None:
    """The thread of a pool keeps the context of the request that it was started in."""
    answer = Answer(clock, None, half.Sums([], 2), lambda _: None, None)
    contexts = []

    def application(*_: Any) -> list[Any]:
        contexts.append(contextvars.copy_context())
        return []

    answer.serve(application)

    assert contexts[0].run(half.active.get) is clock
    assert contexts[0].run(half.running) is None


def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


#: What refuses a second interpreter: our own words, and those of Python 3.12 and later
#: where the interpreter is isolated.
REFUSALS = ("main interpreter", "does not support loading in subinterpreters")


@NEEDS_C
def test_another_interpreter_gets_the_python_half_and_is_told_why() -> None:
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
        from keylag_otel import clock
        assert clock.COMPILED and clock.REFUSED is None
        inner = '''
        from keylag_otel import clock
        assert not clock.COMPILED
        assert any(words in clock.REFUSED for words in {REFUSALS}), clock.REFUSED
        clock.watch(len)([])
        '''
        for _ in range(2):
            failed = interpreters.run_string(interpreters.create(), inner)
            assert failed is None, failed
        assert clock.watch(len)([1]) == 1
        """
    )

    assert (done.returncode, done.stderr.count("keylag watches calls in Python")) == (
        0,
        2,
    ), done.stderr


@NEEDS_C
def test_it_can_be_imported_again() -> None:
    done = run(
        """
        import sys
        from keylag_otel import _watch as first
        watched = first.watch(len)
        clock = first.Clock("GET", 3, 2)
        del sys.modules["keylag_otel._watch"]
        from importlib import import_module
        second = import_module("keylag_otel._watch")
        assert second is not first and second.active is first.active
        second.active.set(clock)
        assert watched([1]) == 1 and second.running() is clock
        """
    )

    assert done.returncode == 0, done.stderr


@NEEDS_C
@pytest.mark.skipif(
    hasattr(sys, "gettotalrefcount"),
    reason="a debug build of Python aborts where its own frames find no memory",
)
def test_memory_may_run_out_anywhere() -> None:
    """Let each allocation fail in turn: there is an exception, and nothing worse."""
    pytest.importorskip("_testcapi")
    done = run(
        """
        import _testcapi, types
        from keylag_otel import _watch as half
        layer = types.SimpleNamespace(hit=1, miss=2, received=3)
        owner = types.SimpleNamespace(_keylag_layer=layer, name="n", rowcount=2)
        def application(environ, start):
            start("200 OK", [])
            return iter([b"1"])
        class Body:
            def __enter__(self): return self
            def __exit__(self, *_): pass
        calls = (
            half.watch(lambda *_: b"1", 0, 7, lambda *_: 0, half.got(None)),
            half.watch(lambda *_: b"1", 0, 7, half.stated(0, "s", "t"),
                       half.executed({}, lambda _: (1, 2))),
            half.asked(lambda *_: 1 / 0, 0, half.got(None), lambda *_: None),
        )
        body = half.watch_body(Body, 0, 7, half.computed())
        def work():
            clock = half.begun({}, "_", 3, 2, {"REQUEST_METHOD": "GET"})
            clock.writes = True
            sums = half.Sums([1, 2], 2)
            half.active.set(clock)
            try:
                for call in calls:
                    try:
                        call(owner, owner, "text")
                    except ZeroDivisionError:
                        pass
                with body():
                    for number in range(300):
                        clock.tally(number)
                sums.add(clock, 200)
                clock.events, clock.tallies, clock.counts, sums.tallies
                sums.by_key()
                half.activate(clock)
                half.deactivate(clock)
                half.watch(half.watch(len))
            finally:
                half.active.set(None)
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

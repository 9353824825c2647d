"""Measure the cost of each function of the hot path in Python and in C.

    part_costs.py CALL

Runs with the pure part, so that calls can be counted, and prints one JSON object: the
microseconds of CPU time that CALL (GET or POST) takes, and for each function how often
CALL runs it and the nanoseconds of CPU time of one run in Python and in C.
"""

import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import thread_time_ns
from timeit import Timer
from types import FrameType, SimpleNamespace
from typing import Any, NamedTuple

from instrumentation import keylag
from worker import Client

WARM_UP_REQUESTS = 20
TIMED_REQUESTS = 20
ROUNDS = 7
RUNS = 20_000
NO_VALUE = object()
CELLS_OF_REQUEST = 30
COUNTERS_OF_REQUEST = 40

Exercise = Callable[[Any], Callable[[], object]]
"""Takes the pure or native module; returns a callable that runs the function once."""


class Layer(NamedTuple):
    """The first counter ids of a cache layer."""

    hit: int = 1
    miss: int = 2
    received: int = 3


class Backend:
    """An object with a cache layer."""

    _keylag_layer = Layer()


BACKEND = Backend()
CURSOR = SimpleNamespace(rowcount=1)


def _plain(*args: object) -> None:
    """Do nothing."""
    del args


def _wrapper_with_hook(
    name: str, hook: Callable[[Any], Any], *args: object
) -> Exercise:
    """Exercise a wrapper with one hook, before or after the call."""

    def make(hot_path: Any) -> Callable[[], object]:
        wrapped = hot_path.wrap(_plain, **{name: hook(hot_path)})
        return lambda: wrapped(*args)

    return make


def _cache_call(hot_path: Any) -> Callable[[], object]:
    class Asking(Backend):
        get: Callable[[], object] = hot_path.wrap_cache_call(
            _plain, 0, 0, hot_path.count_cache_get(NO_VALUE), _plain
        )

    return Asking().get


def _context_manager(hot_path: Any) -> Callable[[], object]:
    @contextmanager
    def context() -> Iterator[None]:
        yield

    wrapped = hot_path.wrap_context_manager(context, 0xF0, 2)

    def run() -> None:
        with wrapped():
            pass

    return run


def _finished_timer(hot_path: Any) -> Any:
    timer = hot_path.RequestTimer("GET", 0, 2)
    for cell in range(CELLS_OF_REQUEST):
        timer.switch(cell)
    for number in range(COUNTERS_OF_REQUEST):
        timer.increment(number)
    return timer


def _aggregation(hot_path: Any) -> Callable[[], object]:
    aggregator, timer = (
        hot_path.Aggregator(tuple(range(14)), 2),
        _finished_timer(hot_path),
    )
    return lambda: aggregator.add(timer, 200)


@dataclass(frozen=True)
class Part:
    """A function of the hot path: its file and name in Python, and its exercise."""

    file: str
    function: str
    exercise: Exercise
    wrapped: bool = False
    """Whether to subtract the cost of a wrapper without hooks from the exercise."""


PARTS: Mapping[str, Part] = {
    "aggregation": Part("aggregator.py", "Aggregator.add", _aggregation),
    "wrapper": Part(
        "wrapper.py",
        "wrap.<locals>.wrapper",
        lambda hot_path: hot_path.wrap(_plain, 0xF0, 2),
    ),
    "cache layer": Part("wrapper.py", "wrap_cache_call.<locals>.wrapper", _cache_call),
    "context manager": Part(
        "context_managers.py", "_TimedContext.__enter__", _context_manager
    ),
    "hook: memoized call": Part(
        "hooks.py",
        "count_memoized_call.<locals>.hook",
        _wrapper_with_hook(
            "after",
            lambda hot_path: hot_path.count_memoized_call(
                Layer, lambda: (4, 5, 6, None)
            ),
        ),
        wrapped=True,
    ),
    "hook: computed value": Part(
        "hooks.py",
        "mark_miss.<locals>.hook",
        _wrapper_with_hook("before", lambda hot_path: hot_path.mark_miss(), BACKEND),
        wrapped=True,
    ),
    "hook: bytes received": Part(
        "hooks.py",
        "count_bytes_received.<locals>.hook",
        _wrapper_with_hook(
            "before",
            lambda hot_path: hot_path.count_bytes_received(1),
            BACKEND,
            b"12345",
        ),
        wrapped=True,
    ),
    "hook: statement begun": Part(
        "hooks.py",
        "record_statement.<locals>.hook",
        _wrapper_with_hook(
            "before",
            lambda hot_path: hot_path.record_statement(0, "system", "text"),
            1,
            2,
            "3",
        ),
        wrapped=True,
    ),
    "hook: statement executed": Part(
        "hooks.py",
        "count_statement.<locals>.hook",
        _wrapper_with_hook(
            "after",
            lambda hot_path: hot_path.count_statement({"SELECT": (6, 7)}, _plain),
            *(None, CURSOR, "SELECT"),
        ),
        wrapped=True,
    ),
}


def counted(call: Callable[[], None]) -> Counter[tuple[str, str]]:
    """Return the number of calls of each function of keylag_otel.pure."""
    from keylag_otel import pure

    folder = Path(pure.__file__).parent
    counts: Counter[tuple[str, str]] = Counter()

    def profile(frame: FrameType, event: str, argument: object) -> None:
        del argument
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.parent == folder:
            counts[file.name, frame.f_code.co_qualname] += 1

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counts


def nanoseconds(hot_path: Any, exercise: Exercise) -> float:
    """Return the CPU time of one run in a request."""
    hot_path.timer_var.set(hot_path.RequestTimer("GET", 0, 2))
    try:
        return Timer(exercise(hot_path), timer=thread_time_ns).timeit(RUNS) / RUNS
    finally:
        hot_path.timer_var.set(None)


def measured() -> dict[str, dict[str, float]]:
    """Return the fastest nanoseconds of each function in Python and in C.

    CPU time excludes the time of other processes.
    """
    implementations = {
        "python": import_module("keylag_otel.pure"),
        "c": import_module("keylag_otel._native"),
    }
    exercises = {"": _wrapper_with_hook("before", lambda _: None)}
    exercises |= {name: part.exercise for name, part in PARTS.items()}
    fastest = {
        (name, title): min(nanoseconds(hot_path, exercise) for _ in range(ROUNDS))
        for name, exercise in exercises.items()
        for title, hot_path in implementations.items()
    }
    return {
        name: {
            title: fastest[name, title] - part.wrapped * fastest["", title]
            for title in implementations
        }
        for name, part in PARTS.items()
    }


def main() -> None:
    """Count, measure and print the costs."""
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as output:
        os.dup2(2, 1)
        client = Client(keylag())
        call = {"GET": client.validate, "POST": client.issue}[sys.argv[1]]
        for _ in range(WARM_UP_REQUESTS):
            call()
        taken = Timer(call, timer=thread_time_ns).timeit(TIMED_REQUESTS)
        counts = counted(call)
        parts = measured()
        for name, part in PARTS.items():
            parts[name]["runs"] = counts[part.file, part.function]
        found = {"call_us": taken / TIMED_REQUESTS / 1000, "parts": parts}
        print(json.dumps(found), file=output, flush=True)


if __name__ == "__main__":
    main()

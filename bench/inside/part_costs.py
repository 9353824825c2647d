"""What each part of Keylag costs in Python and in C, and how often a request runs it.

    part_costs.py CALL

Runs with Keylag without C, so that calls of the parts can be counted, and prints one
JSON object: the microseconds of processor time that CALL (GET or POST) takes, and by
part how often CALL runs it and the nanoseconds that one run takes in Python and in C.
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
from typing import Any

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
"""Takes the module in Python or in C; returns what runs the part once."""


class Layer:
    """A cache layer, as `cache_layers` numbers its counters."""

    hit, miss, received = 1, 2, 3


class Backend:
    """An object that a layer was assigned to."""

    _keylag_layer = Layer


BACKEND = Backend()
CURSOR = SimpleNamespace(rowcount=1)


def _plain(*args: object) -> None:
    """Be called."""
    del args


def _hooked(name: str, hook: Callable[[Any], Any], *args: object) -> Exercise:
    """Exercise a wrapper with one hook, before or after the call."""

    def make(half: Any) -> Callable[[], object]:
        wrapped = half.watch(_plain, **{name: hook(half)})
        return lambda: wrapped(*args)

    return make


def _asked(half: Any) -> Callable[[], object]:
    class Asking(Backend):
        get: Callable[[], object] = half.asked(_plain, 0, half.got(NO_VALUE), _plain)

    return Asking().get


def _body(half: Any) -> Callable[[], object]:
    @contextmanager
    def context() -> Iterator[None]:
        yield

    wrapped = half.watch_body(context, 0xF0, 2)

    def run() -> None:
        with wrapped():
            pass

    return run


def _finished_clock(half: Any) -> Any:
    clock = half.Clock("GET", 0, 2)
    for cell in range(CELLS_OF_REQUEST):
        clock.turn(cell)
    for number in range(COUNTERS_OF_REQUEST):
        clock.tally(number)
    return clock


def _sums(half: Any) -> Callable[[], object]:
    sums, clock = half.Sums(tuple(range(14)), 2), _finished_clock(half)
    return lambda: sums.add(clock, 200)


@dataclass(frozen=True)
class Part:
    """One part: the function in Python whose calls are counted, and its exercise."""

    file: str
    function: str
    exercise: Exercise
    wrapped: bool = False
    """Whether the exercise contains a wrapper without hooks, which is subtracted."""


PARTS: Mapping[str, Part] = {
    "aggregation": Part("sums.py", "Sums.add", _sums),
    "wrapper": Part(
        "watched.py",
        "watch.<locals>.watched",
        lambda half: half.watch(_plain, 0xF0, 2),
    ),
    "cache layer": Part("watched.py", "asked.<locals>.watched", _asked),
    "context manager": Part("bodies.py", "_Body.__enter__", _body),
    "hook: request-local look-up": Part(
        "notes.py",
        "looked_up.<locals>.note",
        _hooked("after", lambda half: half.looked_up(NO_VALUE), BACKEND),
        wrapped=True,
    ),
    "hook: memoized call": Part(
        "notes.py",
        "memoized.<locals>.note",
        _hooked("after", lambda half: half.memoized(Layer, lambda: (4, 5))),
        wrapped=True,
    ),
    "hook: computed value": Part(
        "notes.py",
        "computed.<locals>.note",
        _hooked("before", lambda half: half.computed(), BACKEND),
        wrapped=True,
    ),
    "hook: bytes received": Part(
        "notes.py",
        "received.<locals>.note",
        _hooked("before", lambda half: half.received(1), BACKEND, b"12345"),
        wrapped=True,
    ),
    "hook: statement begun": Part(
        "notes.py",
        "stated.<locals>.note",
        _hooked("before", lambda half: half.stated(0, "system", "text"), 1, 2, "3"),
        wrapped=True,
    ),
    "hook: statement executed": Part(
        "notes.py",
        "executed.<locals>.note",
        _hooked(
            "after",
            lambda half: half.executed({"SELECT": (6, 7)}, _plain),
            *(None, CURSOR, "SELECT"),
        ),
        wrapped=True,
    ),
}


def counted(call: Callable[[], None]) -> Counter[tuple[str, str]]:
    """Return how often a call runs each function of keylag_otel.pure."""
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


def nanoseconds(half: Any, exercise: Exercise) -> float:
    """Return the processor time that one run takes in a request."""
    half.active.set(half.Clock("GET", 0, 2))
    try:
        return Timer(exercise(half), timer=thread_time_ns).timeit(RUNS) / RUNS
    finally:
        half.active.set(None)


def measured() -> dict[str, dict[str, float]]:
    """Return the nanoseconds of each part in Python and in C at their fastest.

    Processor time leaves out what other processes take of the machine.
    """
    halves = {
        "python": import_module("keylag_otel.pure"),
        "c": import_module("keylag_otel._watch"),
    }
    exercises = {"": _hooked("before", lambda _: None)}
    exercises |= {name: part.exercise for name, part in PARTS.items()}
    fastest = {
        (name, title): min(nanoseconds(half, exercise) for _ in range(ROUNDS))
        for name, exercise in exercises.items()
        for title, half in halves.items()
    }
    return {
        name: {
            title: fastest[name, title] - part.wrapped * fastest["", title]
            for title in halves
        }
        for name, part in PARTS.items()
    }


def main() -> None:
    """Count, measure and print."""
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
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
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()

"""Differential testing of the pure and the native part with the same operations.

A `Side` is one part with its objects.  An operation is a function of a side and of
plain arguments; `outcome` runs it and returns its result, or the class of its
exception, as a comparable value.
"""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Callable, NamedTuple

from fake_time import FakeTime

from keylag_otel import wrappers
from keylag_otel.response import ResponseRecorder

#: Invalid values for any argument.
HOSTILE = (None, "text", b"bytes", -1, 10**30, 2**63, 1.5, [], {}, ())
#: Behaviour of each hook and of the wrapped call.
Behaviour = "dict[str, str | None]"
RETURNS, RAISES, EXITS = "returns", "raises", "exits"

ATTRIBUTES = (
    *("current_cell", "last_tick", "records_events", "is_traced", "method", "route"),
    *("auth_method", "missed_region", "cache_layer", "last_layer", "environ"),
)
NO_VALUE = SimpleNamespace(name="no value")


class Layer(NamedTuple):
    """A cache layer: the counters of a hit, a miss and bytes received."""

    hit: Any = 3
    miss: Any = 4
    received: Any = 5


LAYER = Layer()


class Backend:
    """An object with a cache layer, which is also a dialect, a cursor and a region."""

    name = "sqlite"
    rowcount = 2
    _keylag_layer = LAYER


REGION = Backend()


def memoized_counters() -> tuple[Any, ...]:
    """Return the counters of a hit, a miss and a local hit, and the backend's layer."""
    return 8, 9, 10, LAYER


class Side:
    """One part, its objects in order of creation, and a log of calls."""

    def __init__(self, hot_path: Any) -> None:
        self.hot_path = hot_path
        self.time = FakeTime()
        self.call_ns = 7
        self.log: list[Any] = []
        self.made: dict[str, list[Any]] = {}
        hot_path.set_time_source(self.time)
        hot_path.set_fault_handler(lambda _: self.log.append("fault"))

    def close(self) -> None:
        """Restore the state of the part."""
        self.hot_path.timer_var.set(None)
        self.hot_path.set_time_source(None)
        self.hot_path.set_fault_handler(wrappers.count_fault)

    def keep(self, kind: str, thing: Any) -> str:
        """Store an object; return its name, which is equal on both sides."""
        self.made.setdefault(kind, []).append(thing)
        return f"{kind} {len(self.made[kind])}"

    def pick(self, kind: str, index: int) -> Any:
        """Return an object of a kind, or None if there is none."""
        things = self.made.get(kind)
        return things[index % len(things)] if things else None

    def plain(self, value: Any) -> Any:
        """Return a value with our objects replaced by their names."""
        if isinstance(value, (list, tuple)):
            return [self.plain(each) for each in value]
        if isinstance(value, dict):
            return {key: self.plain(each) for key, each in value.items()}
        for kind, things in self.made.items():
            for number, thing in enumerate(things, 1):
                if thing is value:
                    return f"{kind} {number}"
        known = isinstance(value, (str, bytes, int, float, type(None), type))
        return value if known else type(value).__name__

    def does(self, what: str, name: str, result: Any = None) -> Callable[..., Any]:
        """Return a function that logs its arguments, then returns, raises or exits."""

        def function(*args: Any, **kwargs: Any) -> Any:
            self.log.append((name, self.plain(args), self.plain(kwargs)))
            self.time.passes(self.call_ns)
            if what == RAISES:
                raise LookupError(name)
            if what == EXITS:
                raise SystemExit(name)
            return result

        return function

    def outcome(self, operation: Callable[..., Any], *args: Any) -> Any:
        """Run an operation; return its plain result, or the name of its exception."""
        self.time.passes(5)
        try:
            return self.plain(operation(self, *args))
        except BaseException as error:  # noqa: BLE001 - SystemExit is one of them
            return type(error).__name__

    def observed(self) -> Any:
        """Return all readable state of the objects."""
        return [
            *map(self._timer, self.made.get("timer", ())),
            *map(self._aggregate, self.made.get("aggregate", ())),
            *map(self._aggregator, self.made.get("aggregator", ())),
            self.plain(self.hot_path.timer_var.get()),
            self.log,
        ]

    def _timer(self, timer: Any) -> Any:
        names = (
            *ATTRIBUTES,
            "counts",
            "counters",
            "calls",
            "wall_ns",
            "events",
            "event_limit_reached",
        )
        return self._read(timer, (*names, "started_at"))

    def _aggregate(self, aggregate: Any) -> Any:
        names = ("counts", "buckets", "wall_ns", "min_ns", "max_ns")
        return self._read(aggregate, names)

    def _read(self, thing: Any, names: tuple[str, ...]) -> Any:
        return [
            thing.self_times(),
            self.plain({name: getattr(thing, name) for name in names}),
        ]

    def _aggregator(self, aggregator: Any) -> Any:
        rows = {key: self._aggregate(each) for key, each in aggregator.by_key().items()}
        return [rows, aggregator.counters, aggregator.calls]


# Operations: each takes a side and plain arguments.


def new_timer(side: Side, method: Any, at: Any, counts: Any) -> Any:
    return side.keep("timer", side.hot_path.RequestTimer(method, at, counts))


def new_aggregate(side: Side, bounds: Any, counts: Any) -> Any:
    return side.keep("aggregate", side.hot_path.Aggregate(bounds, counts))


def new_aggregator(side: Side, bounds: Any, counts: Any) -> Any:
    return side.keep("aggregator", side.hot_path.Aggregator(bounds, counts))


def begin(side: Side, environ: Any) -> Any:
    timer = side.hot_path.start_timer({"GET": "GET"}, "_OTHER", 1, 2, environ)
    return side.keep("timer", timer)


def call_timer(side: Side, which: int, name: str, args: tuple[Any, ...]) -> Any:
    return getattr(side.pick("timer", which), name)(*args)


def set_call_time(side: Side, nanoseconds: int) -> None:
    side.call_ns = nanoseconds


def set_timer(side: Side, which: int, name: str, value: Any) -> Any:
    setattr(side.pick("timer", which), name, value)


def initialize_again(side: Side, kind: str, which: int, args: tuple[Any, ...]) -> Any:
    side.pick(kind, which).__init__(*args)


def activate(side: Side, which: int | None) -> Any:
    side.hot_path.timer_var.set(None if which is None else side.pick("timer", which))


def add_timer(side: Side, kind: str, which: int, timer: int, status: Any) -> Any:
    given = (side.pick("timer", timer), status)
    side.pick(kind, which).add(*given[: 1 if kind == "aggregate" else 2])


def add_invalid(side: Side, kind: str, which: int, value: Any) -> Any:
    side.pick(kind, which).add(*(value, 200)[: 1 if kind == "aggregate" else 2])


def copy_aggregate(side: Side, which: int) -> Any:
    return side.keep("aggregate", side.pick("aggregate", which).copy())


def increment_aggregator(side: Side, which: int, number: Any) -> Any:
    side.pick("aggregator", which).increment(number)


def clear_aggregator(side: Side, which: int) -> Any:
    side.pick("aggregator", which).clear()


def call_wrapper(
    side: Side, cell: tuple[int, int], does: Behaviour, kinds: Any, statement: Any
) -> Any:
    """Make a wrapper with hooks and call it."""
    hooks = {
        name: side.does(what, name)
        for name, what in does.items()
        if name != "call" and what is not None
    }
    call = side.does(does["call"] or RETURNS, "call", "result")
    wrapped = side.hot_path.wrap(call, *cell, **hooks, kinds=kinds)
    return wrapped(1, "two", *statement, three=3)


def call_cache_call(
    side: Side, counted: Any, kind: Any, does: Behaviour, layer: Any
) -> Any:
    call = side.does(does["call"] or RETURNS, "call", "found")
    after = side.does(does["after"] or RETURNS, "after")
    on_error = side.does(does["on_error"] or RETURNS, "on_error")

    class Asking:
        _keylag_layer = layer
        get = side.hot_path.wrap_cache_call(call, counted, kind, after, on_error)

    return Asking().get("key")


def call_hook(side: Side, name: str, args: tuple[Any, ...], result: Any) -> Any:
    """Wrap a call with one of the built-in hooks, and call it."""
    hook = getattr(side.hot_path, name)
    made = {
        "count_cache_get": lambda: {"after": hook(NO_VALUE)},
        "count_bytes_received": lambda: {"before": hook(1)},
        "count_memoized_call": lambda: {"after": hook(REGION, memoized_counters)},
        "mark_miss": lambda: {"before": hook()},
        "record_statement": lambda: {"before": hook(0, "system", "text")},
        "count_statement": lambda: {"after": hook({}, lambda _: (10, 11))},
    }[name]()
    return side.hot_path.wrap(side.does(RETURNS, name, result), **made)(*args)


def use_context(side: Side, does: Behaviour) -> Any:
    @contextmanager
    def context() -> Any:
        side.does(does["enter"] or RETURNS, "enter")()
        yield "entered"
        side.does(does["exit"] or RETURNS, "exit")()

    left = does["on_exit"]
    hook = None if left is None else side.does(left, "on_exit")
    with side.hot_path.wrap_context_manager(context, 0xF0, 2, hook)() as entered:
        side.does(does["body"] or RETURNS, "body")()
    return entered


def serve(side: Side, which: int, status: Any, parts: Any, does: str) -> Any:
    """Serve a request as a WSGI server does."""
    aggregator = side.hot_path.Aggregator((10, 20), 2)
    side.keep("aggregator", aggregator)

    class SideRecorder(ResponseRecorder):
        hot_path = side.hot_path

    recorder = SideRecorder(
        side.pick("timer", which),
        side.does(RETURNS, "start_response", "write"),
        aggregator,
        side.does(RETURNS, "route", "/found"),
        side.does(RETURNS, "traced"),
    )
    side.keep("recorder", recorder)

    def application(environ: Any, start_response: Any) -> Any:
        start_response(status, [("name", "value")])
        side.does(does, "application")(environ)
        return iter(parts) if isinstance(parts, tuple) else parts

    body = recorder.serve(application)
    return [side.plain(body), *_sent(body)]


def _sent(body: Any) -> list[Any]:
    sent = list(body)
    if hasattr(body, "close"):
        body.close()
        body.close()
    return sent

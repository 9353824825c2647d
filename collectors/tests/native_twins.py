"""The pure and the native part side by side, driven by the same operations.

A `Side` is one of the two with its own objects.  An operation is a function of a
side and of plain arguments; `outcome` runs it and returns a plain value that can be
compared: a result, or the class of the exception that it raised.
"""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Callable

from fake_time import FakeTime

from keylag_otel.answer import Answer

#: Values that no caller of Keylag's own passes, for any argument.
HOSTILE = (None, "text", b"bytes", -1, 10**30, 2**63, 1.5, [], {}, ())
#: What a hook or a wrapped call does.
Does = "dict[str, str | None]"
RETURNS, RAISES, EXITS = "returns", "raises", "exits"

ATTRIBUTES = (
    *("at", "mark", "writes", "kept", "method", "route"),
    *("auth_method", "missed", "layer", "environ"),
)
NO_VALUE = SimpleNamespace(name="no value")


class Layer:
    """A cache layer: the counters of a hit, a miss and bytes received."""

    hit, miss, received = 3, 4, 5


class Backend:
    """An object that a cache layer was assigned to."""

    _keylag_layer = Layer


class Side:
    """One of the two parts, its objects in the order of their making, and a log."""

    def __init__(self, half: Any) -> None:
        self.half = half
        self.time = FakeTime()
        self.log: list[Any] = []
        self.made: dict[str, list[Any]] = {}
        half.read_with(self.time)
        half.tell_faults(lambda _: self.log.append("fault"))

    def close(self) -> None:
        """Give the part back as it was."""
        self.half.active.set(None)
        self.half.read_with(None)

    def keep(self, kind: str, thing: Any) -> str:
        """Keep an object; return its name, which is the same on both sides."""
        self.made.setdefault(kind, []).append(thing)
        return f"{kind} {len(self.made[kind])}"

    def pick(self, kind: str, index: int) -> Any:
        """Return one of the objects of a kind; None while there is none."""
        things = self.made.get(kind)
        return things[index % len(things)] if things else None

    def plain(self, value: Any) -> Any:
        """Return a value in which our own objects are replaced by their names."""
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
        """Return a function that logs its arguments, then does what it is told."""

        def function(*args: Any, **kwargs: Any) -> Any:
            self.log.append((name, self.plain(args), self.plain(kwargs)))
            self.time.passes(7)
            if what == RAISES:
                raise LookupError(name)
            if what == EXITS:
                raise SystemExit(name)
            return result

        return function

    def outcome(self, operation: Callable[..., Any], *args: Any) -> Any:
        """Run an operation; return its plain result, or the class of its error."""
        self.time.passes(5)
        try:
            return self.plain(operation(self, *args))
        except BaseException as error:  # noqa: BLE001 - SystemExit is one of them
            return type(error).__name__

    def observed(self) -> Any:
        """Return everything that can be read from the objects that were made."""
        return [
            *map(self._clock, self.made.get("clock", ())),
            *map(self._totals, self.made.get("totals", ())),
            *map(self._sums, self.made.get("sums", ())),
            self.plain(self.half.active.get()),
            self.log,
        ]

    def _clock(self, clock: Any) -> Any:
        names = (*ATTRIBUTES, "counts", "tallies", "wall_ns", "events", "is_full")
        return self._read(clock, (*names, "began"))

    def _totals(self, totals: Any) -> Any:
        names = ("counts", "buckets", "wall_ns", "shortest", "longest")
        return self._read(totals, names)

    def _read(self, thing: Any, names: tuple[str, ...]) -> Any:
        return [
            thing.spent(),
            self.plain({name: getattr(thing, name) for name in names}),
        ]

    def _sums(self, sums: Any) -> Any:
        rows = {key: self._totals(each) for key, each in sums.by_key().items()}
        return [rows, sums.tallies]


# What follows are the operations: each takes a side and plain arguments.


def new_clock(side: Side, method: Any, at: Any, counts: Any) -> Any:
    return side.keep("clock", side.half.Clock(method, at, counts))


def new_totals(side: Side, bounds: Any, counts: Any) -> Any:
    return side.keep("totals", side.half.Totals(bounds, counts))


def new_sums(side: Side, bounds: Any, counts: Any) -> Any:
    return side.keep("sums", side.half.Sums(bounds, counts))


def begin(side: Side, environ: Any) -> Any:
    begun = side.half.begun({"GET": "GET"}, "_OTHER", 1, 2, environ)
    return side.keep("clock", begun)


def call_clock(side: Side, which: int, name: str, args: tuple[Any, ...]) -> Any:
    return getattr(side.pick("clock", which), name)(*args)


def set_clock(side: Side, which: int, name: str, value: Any) -> Any:
    setattr(side.pick("clock", which), name, value)


def initialize_again(side: Side, kind: str, which: int, args: tuple[Any, ...]) -> Any:
    side.pick(kind, which).__init__(*args)


def activate(side: Side, which: int | None) -> Any:
    side.half.active.set(None if which is None else side.pick("clock", which))


def add_clock(side: Side, kind: str, which: int, clock: int, status: Any) -> Any:
    given = (side.pick("clock", clock), status)
    side.pick(kind, which).add(*given[: 1 if kind == "totals" else 2])


def add_nonsense(side: Side, kind: str, which: int, value: Any) -> Any:
    side.pick(kind, which).add(*(value, 200)[: 1 if kind == "totals" else 2])


def copy_totals(side: Side, which: int) -> Any:
    return side.keep("totals", side.pick("totals", which).copy())


def count_in_sums(side: Side, which: int, number: Any) -> Any:
    side.pick("sums", which).tally(number)


def clear_sums(side: Side, which: int) -> Any:
    side.pick("sums", which).clear()


def call_watched(side: Side, cell: tuple[int, int], does: Does) -> Any:
    """Make a wrapper with hooks and call it once, nested in itself if it recurses."""
    hooks = {
        name: side.does(what, name)
        for name, what in does.items()
        if name != "call" and what is not None
    }
    call = side.does(does["call"] or RETURNS, "call", "result")
    return side.half.watch(call, *cell, **hooks)(1, "two", three=3)


def call_asked(side: Side, counted: Any, does: Does, layer: Any) -> Any:
    call = side.does(does["call"] or RETURNS, "call", "found")
    after = side.does(does["after"] or RETURNS, "after")
    failed = side.does(does["failed"] or RETURNS, "failed")

    class Asking:
        _keylag_layer = layer
        get = side.half.asked(call, counted, after, failed)

    return Asking().get("key")


def call_hook(side: Side, name: str, args: tuple[Any, ...], result: Any) -> Any:
    """Wrap a call with one of the hooks that ship, and make the call."""
    hook = getattr(side.half, name)
    made = {
        "looked_up": lambda: {"after": hook(NO_VALUE)},
        "got": lambda: {"after": hook(NO_VALUE)},
        "received": lambda: {"before": hook(1)},
        "memoized": lambda: {"after": hook(Layer, lambda: (8, 9))},
        "computed": lambda: {"before": hook()},
        "stated": lambda: {"before": hook(0, "system", "text")},
        "executed": lambda: {"after": hook({}, lambda _: (10, 11))},
    }[name]()
    return side.half.watch(side.does(RETURNS, name, result), **made)(*args)


def use_context(side: Side, does: Does) -> Any:
    @contextmanager
    def context() -> Any:
        side.does(does["enter"] or RETURNS, "enter")()
        yield "entered"
        side.does(does["exit"] or RETURNS, "exit")()

    left = does["left"]
    hook = None if left is None else side.does(left, "left")
    with side.half.watch_body(context, 0xF0, 2, hook)() as entered:
        side.does(does["body"] or RETURNS, "body")()
    return entered


def serve(side: Side, which: int, status: Any, parts: Any, does: str) -> Any:
    """Serve one request from its start to its end, as a WSGI server does."""
    sums = side.half.Sums((10, 20), 2)
    side.keep("sums", sums)

    class SideAnswer(Answer):
        half = side.half

    answer = SideAnswer(
        side.pick("clock", which),
        side.does(RETURNS, "start_response", "write"),
        sums,
        side.does(RETURNS, "route", "/found"),
        side.does(RETURNS, "traced"),
    )
    side.keep("answer", answer)

    def application(environ: Any, start_response: Any) -> Any:
        start_response(status, [("name", "value")])
        side.does(does, "application")(environ)
        return iter(parts) if isinstance(parts, tuple) else parts

    body = answer.serve(application)
    return [side.plain(body), *_sent(body)]


def _sent(body: Any) -> list[Any]:
    sent = list(body)
    if hasattr(body, "close"):
        body.close()
        body.close()
    return sent

"""The notes that are told most."""

from __future__ import annotations

import operator
from typing import Any, Callable

from keylag_otel.pure.clock import COUNT_LIMIT, Clock, below


def looked_up(no_value: Any, /) -> Callable[..., None]:
    """Return a note that counts a hit or, if it found `no_value`, a miss.

    It is for a method of what was given its layer.
    """

    def note(clock: Clock, args: tuple[Any, ...], value: Any) -> None:
        layer = args[0]._keylag_layer  # noqa: SLF001
        clock.tally(layer.miss if value is no_value else layer.hit)

    return note


def got(no_value: Any, /) -> Callable[..., None]:
    """Return a note that counts what the layer that is asked has found.

    Several values in a list are several look-ups; of serialised ones, the bytes
    are counted.
    """

    def note(clock: Clock, args: tuple[Any, ...], value: Any) -> None:
        del args
        for one in value if isinstance(value, list) else (value,):
            tally_found(clock, one)

    def tally_found(clock: Clock, value: Any) -> None:
        if value is None or value is no_value:
            clock.tally(clock.layer.miss)
        else:
            clock.tally(clock.layer.hit)
            if type(value) is bytes:
                clock.tally(clock.layer.received, len(value))

    return note


def received(index: int, /) -> Callable[..., None]:
    """Return a note that counts bytes which the layer that is asked receives.

    They are an argument of the call, or how many they are is.
    """
    if operator.index(index) < 0:
        message = "no argument has that index"
        raise ValueError(message)

    def note(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        del kwargs
        if clock.layer is not None and index < len(args):
            value = args[index]
            count = value if isinstance(value, int) else len(value)
            clock.tally(clock.layer.received, count)

    return note


def memoized(
    region: Any, numbers: Callable[[], tuple[int, int]], /
) -> Callable[..., None]:
    """Return a note that counts a hit, or a miss if `region` computed a value.

    `numbers` is asked once, when there is something to count, for the tallies
    of a hit and of a miss.
    """
    known: list[int] = []

    def note(clock: Clock, args: tuple[Any, ...], result: Any) -> None:
        del args, result
        missed = clock.missed is region
        clock.missed = None
        if not known:
            hit, miss = numbers()
            known.extend((hit, miss))
        clock.tally(known[missed])

    return note


def computed() -> Callable[..., None]:
    """Return a note that a region of the cache had to compute a value.

    It is for a method of the region.
    """

    def note(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        del kwargs
        if args:
            clock.missed = args[0]

    return note


def stated(counted: int, system: str, text: str, /) -> Callable[..., None]:
    """Return a note that a dialect is to execute a statement.

    It is for a method that takes a cursor and the statement, and is told before the
    call.  It adds one to ``counts[counted]``; `system` and `text` are what the
    dialect's name and the statement are written down as.
    """
    counted = below(COUNT_LIMIT, counted)

    def note(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        del kwargs
        clock.count_one(counted)
        if clock.writes and len(args) > 2:  # noqa: PLR2004
            clock.note(system, args[0].name)
            clock.note(text, args[2])

    return note


def executed(
    known: dict[str, tuple[int, int]], numbers: Callable[[str], tuple[int, int]], /
) -> Callable[..., None]:
    """Return a note that counts a statement that was executed, and its rows.

    `known` has, by statement, the tallies of both; `numbers` is asked for the rest.
    """

    def note(clock: Clock, args: tuple[Any, ...], result: Any) -> None:
        del result
        if len(args) < 3:  # noqa: PLR2004
            return
        executions, returned = known.get(args[2]) or numbers(args[2])
        clock.tally(executions)
        rows = args[1].rowcount
        if rows > 0:
            clock.tally(returned, rows)

    return note

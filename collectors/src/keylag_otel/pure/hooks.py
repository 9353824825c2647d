"""The hooks that run most often; each function here returns a hook.

A hook runs before or after a wrapped call, as `keylag_otel.pure.wrapper.wrap` says.
"""

from __future__ import annotations

import operator
from typing import Any, Callable

from keylag_otel.pure.request_timer import COUNT_LIMIT, RequestTimer, int_below


def count_cache_get(no_value: Any, /) -> Callable[..., None]:
    """Count hits, misses and bytes of a call to the current cache layer.

    Each item of a list is a look-up.  Only serialised values have bytes.  Records the
    layer for `count_memoized_call`.
    """

    def hook(timer: RequestTimer, args: tuple[Any, ...], value: Any) -> None:
        del args
        timer.last_layer = timer.cache_layer
        for one in value if isinstance(value, list) else (value,):
            count_value(timer, one)

    def count_value(timer: RequestTimer, value: Any) -> None:
        if value is None or value is no_value:
            timer.increment(timer.cache_layer.miss)
        else:
            timer.increment(timer.cache_layer.hit)
            if type(value) is bytes:
                timer.increment(timer.cache_layer.received, len(value))

    return hook


def count_bytes_received(index: int, /) -> Callable[..., None]:
    """Count the bytes that the current cache layer receives.

    The argument at `index` is the bytes or their number.  Raises ValueError if
    `index` is negative.
    """
    if operator.index(index) < 0:
        message = "argument index out of range"
        raise ValueError(message)

    def hook(
        timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        del kwargs
        if timer.cache_layer is not None and index < len(args):
            value = args[index]
            count = value if isinstance(value, int) else len(value)
            timer.increment(timer.cache_layer.received, count)

    return hook


def count_memoized_call(
    region: Any, counter_ids: Callable[[], tuple[int, int, int, Any]], /
) -> Callable[..., None]:
    """Count a call of a memoized function: a miss if `region` computed a value.

    `counter_ids` returns the counter ids of a hit, of a miss and of a hit in the
    request-local cache, and the layer of the backend; it is called once, for the first
    call that is counted.  A hit without a call to that layer is a request-local one.
    """
    cached: list[Any] = []

    def hook(timer: RequestTimer, args: tuple[Any, ...], result: Any) -> None:
        del args, result
        missed = timer.missed_region is region
        asked, timer.last_layer = timer.last_layer, None
        timer.missed_region = None
        if not cached:
            cached.extend(counter_ids())
        hit, miss, local_hit, layer = cached
        timer.increment(miss if missed else hit)
        if not missed and asked is not layer:
            timer.increment(local_hit)

    return hook


def mark_miss() -> Callable[..., None]:
    """Record which cache region computes a value, for `count_memoized_call`.

    The wrapped call is a method of the region.
    """

    def hook(
        timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        del kwargs
        if args:
            timer.missed_region = args[0]

    return hook


def record_statement(
    count_index: int, system: str, text: str, /
) -> Callable[..., None]:
    """Count a statement before a dialect executes it; record its text for a trace.

    The wrapped call is a method of a dialect that takes a cursor and the statement.
    Increments ``counts[count_index]``.  `system` and `text` name the annotations with
    the dialect and the statement.  Raises ValueError for an invalid index.
    """
    count_index = int_below(COUNT_LIMIT, count_index)

    def hook(
        timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        del kwargs
        timer.count_if_present(count_index)
        if timer.records_events and len(args) > 2:  # noqa: PLR2004
            timer.annotate(system, args[0].name)
            timer.annotate(text, args[2])

    return hook


def count_statement(
    cached: dict[str, tuple[int, int]],
    counter_ids: Callable[[str], tuple[int, int]],
    /,
) -> Callable[..., None]:
    """Count an executed statement and its rows.

    `cached` maps statements to the two counter ids; `counter_ids` returns those of
    other statements.
    """

    def hook(timer: RequestTimer, args: tuple[Any, ...], result: Any) -> None:
        del result
        if len(args) < 3:  # noqa: PLR2004
            return
        statements_id, rows_id = cached.get(args[2]) or counter_ids(args[2])
        timer.increment(statements_id)
        rows = args[1].rowcount
        if rows > 0:
            timer.increment(rows_id, rows)

    return hook

"""The breakdown as a Server-Timing header (W3C Server Timing).

Entries: ``total``, the categories, the counts, then each cell as ``phase.operation``.
Durations are milliseconds; the categories add up to the total, and so do the cells.
"""

from __future__ import annotations

import hmac
from functools import partial
from typing import Any, Callable

from keylag_otel import environment
from keylag_otel.model import CATEGORIES, CATEGORY_OF_CELL, CELLS
from keylag_otel.request_timer import COUNTS, RequestTimer

_NS_PER_MS = 1e6


def _entry(name: str, nanoseconds: int) -> str:
    return f"{name};dur={nanoseconds / _NS_PER_MS:.4f}"


def server_timing(timer: RequestTimer) -> str:
    """Return the value of the header for the time accumulated so far."""
    cells = timer.self_times()
    categories = dict.fromkeys(CATEGORIES, 0)
    for cell, nanoseconds in cells.items():
        categories[CATEGORY_OF_CELL[cell]] += nanoseconds
    return ", ".join(
        [
            _entry("total", timer.wall_ns),
            *(_entry(category, spent) for category, spent in categories.items()),
            *(f"{name};desc={count}" for name, count in zip(COUNTS, timer.counts)),
            *(_entry(".".join(CELLS[cell]), spent) for cell, spent in cells.items()),
        ]
    )


def header_predicate() -> Callable[[dict[str, Any]], bool] | None:
    """Return a predicate of WSGI environments that get the header; None for none."""
    if keys := environment.server_timing_keys():
        return partial(is_signed, keys)
    return (lambda _: True) if environment.server_timing() else None


def is_signed(keys: tuple[bytes, ...], environ: dict[str, Any]) -> bool:
    """Return whether a request is signed with one of the keys, as OSProfiler does."""
    given = environ.get("HTTP_X_TRACE_HMAC", "").strip().encode(errors="replace")
    if not given:
        return False
    content = environ.get("HTTP_X_TRACE_INFO", "").encode(errors="replace")
    signatures = (hmac.new(key, content, "sha1").hexdigest().encode() for key in keys)
    return any(hmac.compare_digest(given, signature) for signature in signatures)

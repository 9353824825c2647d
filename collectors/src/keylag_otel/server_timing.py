"""The breakdown as a Server-Timing header (W3C Server Timing).

``total``, the categories that add up to it, the counts, then each cell
as ``phase.operation``; durations are milliseconds.
"""

from __future__ import annotations

import hmac
from functools import partial
from typing import Any, Callable

from keylag_otel import environment
from keylag_otel.clock import COUNTS, Clock
from keylag_otel.model import CATEGORIES, CATEGORY_OF_CELL, CELLS

_NS_PER_MS = 1e6


def _entry(name: str, nanoseconds: int) -> str:
    return f"{name};dur={nanoseconds / _NS_PER_MS:.4f}"


def server_timing(clock: Clock) -> str:
    """Return the header's value for what the clock has booked so far."""
    cells = clock.spent()
    categories = dict.fromkeys(CATEGORIES, 0)
    for cell, nanoseconds in cells.items():
        categories[CATEGORY_OF_CELL[cell]] += nanoseconds
    return ", ".join(
        [
            _entry("total", clock.wall_ns),
            *(_entry(category, spent) for category, spent in categories.items()),
            *(f"{name};desc={count}" for name, count in zip(COUNTS, clock.counts)),
            *(_entry(".".join(CELLS[cell]), spent) for cell, spent in cells.items()),
        ]
    )


def whose() -> Callable[[dict[str, Any]], bool] | None:
    """Return what tells whether an answer gets the header; None if none does."""
    if keys := environment.server_timing_keys():
        return partial(is_signed, keys)
    return (lambda _: True) if environment.server_timing() else None


def is_signed(keys: tuple[bytes, ...], environ: dict[str, Any]) -> bool:
    """Return whether a request is signed with one of the keys, as for OSProfiler."""
    said = environ.get("HTTP_X_TRACE_HMAC", "").strip().encode(errors="replace")
    if not said:
        return False
    content = environ.get("HTTP_X_TRACE_INFO", "").encode(errors="replace")
    signs = (hmac.new(key, content, "sha1").hexdigest().encode() for key in keys)
    return any(hmac.compare_digest(said, sign) for sign in signs)

"""The breakdown as a Server-Timing header (W3C Server Timing).

``total``, the headline blocks that add up to it, the counts, then each cell
as ``phase.operation``; durations are milliseconds.
"""

from __future__ import annotations

from keylag_otel.clock import COUNTS, Clock
from keylag_otel.model import BLOCK_OF_CELL, BLOCKS, CELLS

_NS_PER_MS = 1e6


def _entry(name: str, nanoseconds: int) -> str:
    return f"{name};dur={nanoseconds / _NS_PER_MS:.4f}"


def server_timing(clock: Clock) -> str:
    """Return the header's value for what the clock has booked so far."""
    blocks = dict.fromkeys(BLOCKS, 0)
    for cell, nanoseconds in clock.spent().items():
        blocks[BLOCK_OF_CELL[cell]] += nanoseconds
    return ", ".join(
        [
            _entry("total", clock.wall_ns),
            *(_entry(block, spent) for block, spent in blocks.items()),
            *(f"{name};desc={count}" for name, count in zip(COUNTS, clock.counts)),
            *(
                _entry(".".join(CELLS[cell]), spent)
                for cell, spent in clock.spent().items()
            ),
        ]
    )

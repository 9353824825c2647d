"""OSProfiler, where it is told of a request and where it tells of points."""

from __future__ import annotations

from keylag_otel.point_values import without_values
from keylag_otel.seam import Seam
from keylag_otel.traces.osprofiler import held_back, note_traced
from keylag_otel.wrappers import noted_result

SEAMS = (
    # Called once the header's signature is known to be right.
    Seam("osprofiler.profiler", "init", (noted_result(note_traced),), optional=True),
    Seam(
        "osprofiler.notifier",
        "notify",
        (held_back, without_values),
        optional=True,
        expects=("info",),
    ),
)

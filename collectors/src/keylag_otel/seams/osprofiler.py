"""Seams of OSProfiler: the start of a trace and the notification of points."""

from __future__ import annotations

from keylag_otel.osprofiler_redaction import redact_values
from keylag_otel.seam import Seam
from keylag_otel.traces.osprofiler import force_trace, hold_points
from keylag_otel.wrappers import after_call

SEAMS = (
    # Called after the signature of the header was verified.
    Seam("osprofiler.profiler", "init", (after_call(force_trace),), optional=True),
    Seam(
        "osprofiler.notifier",
        "notify",
        (hold_points, redact_values),
        optional=True,
        expects=("info",),
    ),
)

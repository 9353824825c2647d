"""OSProfiler, where it gives its points to a driver."""

from __future__ import annotations

from keylag_otel.point_values import without_values
from keylag_otel.seam import Seam

SEAMS = (Seam("osprofiler.notifier", "notify", (without_values,)),)

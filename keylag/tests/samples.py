"""Samples of calls, as JMeter measures them."""

from dataclasses import replace
from typing import Any

from keylag.jtl import Sample

SERVED = Sample(
    0.0, 0.0, 0.0, 0.0, "", "200", "", "1", success=True, size_bytes=0, timing=None
)


def sample(label: str, seconds: float, **others: Any) -> Sample:
    """Return a call that took these seconds; `others` are fields of the sample."""
    return replace(
        SERVED,
        label=label,
        elapsed_seconds=seconds,
        latency_seconds=seconds,
        **others,
    )

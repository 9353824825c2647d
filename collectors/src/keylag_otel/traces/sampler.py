"""The sampler of Keylag's tracer provider.  Importing this needs the SDK."""

from __future__ import annotations

from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, SamplingResult

from keylag_otel.traces.forced_sampling import is_forced


class ForcibleSampler(Sampler):
    """Delegates to another sampler, except where sampling is forced.

    The other sampler decides at the start of a request.  At its end, Keylag can still
    trace a request that was slow or that OSProfiler traces.
    """

    def __init__(self, default: Sampler) -> None:
        self._default = default

    def should_sample(
        self, parent_context: Context | None, *args: Any, **kwargs: Any
    ) -> SamplingResult:
        """Return the decision, with the trace state of the caller."""
        sampler = ALWAYS_ON if is_forced(parent_context) else self._default
        return sampler.should_sample(parent_context, *args, **kwargs)

    def get_description(self) -> str:
        """Return a description for logs."""
        return f"ForcibleSampler{{{self._default.get_description()}}}"

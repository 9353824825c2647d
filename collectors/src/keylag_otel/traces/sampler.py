"""The sampler of a provider of our own; the only module here that needs the SDK."""

from __future__ import annotations

from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, SamplingResult

from keylag_otel.traces.keeping import is_kept


class KeepingSampler(Sampler):
    """Asks another sampler, but for spans in a context that is to be kept.

    The other one decides at the head of a request.  What it left out can so be
    kept when the request is over, because it was slow or because OSProfiler was
    asked to trace it.
    """

    def __init__(self, head: Sampler) -> None:
        self._head = head

    def should_sample(
        self, parent_context: Context | None, *args: Any, **kwargs: Any
    ) -> SamplingResult:
        """Return the decision, with the caller's trace state."""
        sampler = ALWAYS_ON if is_kept(parent_context) else self._head
        return sampler.should_sample(parent_context, *args, **kwargs)

    def get_description(self) -> str:
        """Return a name for logs."""
        return f"KeepingSampler{{{self._head.get_description()}}}"

"""What both instrumentors are: a table of seams that is bound, and taken off again."""

from __future__ import annotations

from typing import Any, ClassVar

import wrapt
from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined]
    BaseInstrumentor,
)

from keylag_otel import provider, telemetry
from keylag_otel.seam import Binding, Seam, bind_all
from keylag_otel.traces import tracing


def _prepare(module: Any) -> None:
    del module
    provider.prepare()


class SeamInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Watches the seams of one table."""

    seams: ClassVar[tuple[Seam, ...]]
    #: Imported in the server's first process; with it, what exports, so that no
    #: request waits for imports.
    host: ClassVar[str]
    bindings: list[Binding] = []  # noqa: RUF012 - the base class is a singleton

    def _instrument(self, **kwargs: Any) -> None:
        telemetry.use(kwargs.get("meter_provider"))
        tracing.use(kwargs.get("tracer_provider"))
        self.bindings = bind_all(self.seams)
        wrapt.register_post_import_hook(_prepare, self.host)

    def _uninstrument(self, **kwargs: Any) -> None:
        del kwargs
        for binding in reversed(self.bindings):
            binding.unbind()
        self.bindings = []

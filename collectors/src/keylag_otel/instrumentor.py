"""What both instrumentors are: a table of seams that is bound, and taken off again."""

from __future__ import annotations

from typing import Any, ClassVar

from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined]
    BaseInstrumentor,
)

from keylag_otel import provider, telemetry
from keylag_otel.guard import attempt
from keylag_otel.seam import Binding, Seam, bind_all, when_imported
from keylag_otel.traces import tracing


class SeamInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Watches the seams of one table.

    Nothing that goes wrong here reaches the service: it is logged, and the rest done.
    """

    seams: ClassVar[tuple[Seam, ...]]
    #: Imported in the server's first process; with it, what exports, so that no
    #: request waits for imports.
    host: ClassVar[str]
    bindings: list[Binding] = []  # noqa: RUF012 - the base class is a singleton
    #: Those that watch now; they share one way out.
    _watching: ClassVar[list[SeamInstrumentor]] = []

    def _instrument(self, **kwargs: Any) -> None:
        for signal, name in (
            (telemetry, "meter_provider"),
            (tracing, "tracer_provider"),
        ):
            if name in kwargs or not self._watching:
                attempt(f"use the {name}", signal.use, kwargs.get(name))
        self._watching.append(self)
        self.bindings = bind_all(self.seams)
        when_imported(self.host, self._prepare)

    def _prepare(self, module: Any) -> None:
        del module
        if self in self._watching:
            provider.prepare()

    def _uninstrument(self, **kwargs: Any) -> None:
        del kwargs
        for binding in reversed(self.bindings):
            binding.unbind()
        self.bindings = []
        if self in self._watching:
            self._watching.remove(self)
        if not self._watching:
            attempt("stop its exports", telemetry.stop)

"""The base class of both instrumentors: it binds and unbinds a table of seams."""

from __future__ import annotations

from typing import Any, ClassVar

from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined]
    BaseInstrumentor,
)

from keylag_otel import meter_provider, telemetry
from keylag_otel.guard import attempt
from keylag_otel.seam import Binding, Seam, bind_all, when_imported
from keylag_otel.traces import tracing


class SeamInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Binds the seams of one table.

    A step that fails is logged; the other steps still run.
    """

    seams: ClassVar[tuple[Seam, ...]]
    #: When the server imports this module, exporters are imported too, so that no
    #: request waits for imports.
    host: ClassVar[str]
    bindings: list[Binding] = []  # noqa: RUF012 - the base class is a singleton
    #: Those that are instrumented; they share the exporters.
    _active: ClassVar[list[SeamInstrumentor]] = []

    def _instrument(self, **kwargs: Any) -> None:
        for signal, name in (
            (telemetry, "meter_provider"),
            (tracing, "tracer_provider"),
        ):
            if name in kwargs or not self._active:
                attempt(f"use the {name}", signal.use_provider, kwargs.get(name))
        self._active.append(self)
        self.bindings = bind_all(self.seams)
        when_imported(self.host, self._import_exporters)

    def _import_exporters(self, module: Any) -> None:
        del module
        if self in self._active:
            meter_provider.import_exporters()

    def _uninstrument(self, **kwargs: Any) -> None:
        del kwargs
        for binding in reversed(self.bindings):
            binding.unbind()
        self.bindings = []
        if self in self._active:
            self._active.remove(self)
        if not self._active:
            attempt("stop its exporters", telemetry.stop)

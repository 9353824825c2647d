"""Break every OpenStack Keystone request down into where its time went.

.. code:: python

    from keylag_otel import KeystoneInstrumentor

    KeystoneInstrumentor().instrument()

Do this before Keystone is imported, or let ``keylag_otel.wsgi:application`` or
``opentelemetry-instrument`` do it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

import wrapt
from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined]
    BaseInstrumentor,
)

from keylag_otel import process, provider, telemetry
from keylag_otel.package import TRIED, _instruments, untried_keystone
from keylag_otel.seam import Binding, bind_all
from keylag_otel.seams import SEAMS
from keylag_otel.traces import tracing
from keylag_otel.version import __version__

__all__ = ["KeystoneInstrumentor", "__version__"]

LOG = logging.getLogger("keylag_otel")


def _say_if_untried() -> None:
    untried = untried_keystone()
    if untried:
        LOG.warning(
            "keylag was not tried with Keystone %s, only with %s to %s: it binds "
            "what it finds; `keylag-otel check` lists it",
            *(untried, TRIED[0], TRIED[-1]),
        )


def _prepare(module: Any) -> None:
    del module
    provider.prepare()


class KeystoneInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Watches the seams of Keystone, SQLAlchemy and dogpile.cache."""

    bindings: list[Binding] = []  # noqa: RUF012 - the base class is a singleton

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the releases of Keystone this package knows."""
        return _instruments

    def _instrument(self, **kwargs: Any) -> None:
        _say_if_untried()
        telemetry.use(kwargs.get("meter_provider"))
        tracing.use(kwargs.get("tracer_provider"))
        self.bindings = bind_all(SEAMS)
        process.watch()
        # In the server's first process, so that no request waits for imports.
        wrapt.register_post_import_hook(_prepare, "keystone.server.flask.core")

    def _uninstrument(self, **kwargs: Any) -> None:
        del kwargs
        for binding in reversed(self.bindings):
            binding.unbind()
        self.bindings = []
        process.unwatch()

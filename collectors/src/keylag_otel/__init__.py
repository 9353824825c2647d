"""Break every OpenStack Keystone request down into where its time went.

.. code:: python

    from keylag_otel import KeystoneInstrumentor

    KeystoneInstrumentor().instrument()

Do this before Keystone is imported, or let ``keylag_otel.wsgi:application`` or
``opentelemetry-instrument`` do it.  `AuthTokenInstrumentor` does the same in the
services that ask Keystone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from keylag_otel import patches, process
from keylag_otel.auth_token.seams import SEAMS as AUTH_TOKEN_SEAMS
from keylag_otel.guard import attempt
from keylag_otel.instrumentor import SeamInstrumentor
from keylag_otel.package import (
    TRIED,
    _instruments,
    _instruments_auth_token,
    untried_keystone,
)
from keylag_otel.seams import SEAMS
from keylag_otel.version import __version__

__all__ = ["AuthTokenInstrumentor", "KeystoneInstrumentor", "__version__"]

LOG = logging.getLogger("keylag_otel")


def _say_if_untried() -> None:
    untried = untried_keystone()
    if untried:
        LOG.warning(
            "keylag was not tried with Keystone %s, only with %s to %s: it binds "
            "what it finds; `keylag-otel check` lists it",
            *(untried, TRIED[0], TRIED[-1]),
        )


class KeystoneInstrumentor(SeamInstrumentor):
    """Watches the seams of Keystone, SQLAlchemy and dogpile.cache."""

    seams = SEAMS
    host = "keystone.server.flask.core"

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the releases of Keystone this package knows."""
        return _instruments

    def _instrument(self, **kwargs: Any) -> None:
        attempt("find out Keystone's version", _say_if_untried)
        super()._instrument(**kwargs)
        attempt("patch what it had patched before", patches.redo)
        attempt("take the time of garbage collection", process.watch)

    def _uninstrument(self, **kwargs: Any) -> None:
        attempt("leave garbage collection alone", process.unwatch)
        attempt("put back what it has patched", patches.undo)
        super()._uninstrument(**kwargs)


class AuthTokenInstrumentor(SeamInstrumentor):
    """Watches keystonemiddleware.auth_token, in a service that asks Keystone."""

    seams = AUTH_TOKEN_SEAMS
    host = "keystonemiddleware.auth_token"

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the releases of keystonemiddleware this package knows."""
        return _instruments_auth_token

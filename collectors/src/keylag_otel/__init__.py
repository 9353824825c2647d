"""Break the wall time of each OpenStack Keystone request down into self times.

.. code:: python

    from keylag_otel import KeystoneInstrumentor

    KeystoneInstrumentor().instrument()

Instrument before importing Keystone; ``keylag_otel.wsgi:application`` and
``opentelemetry-instrument`` do both in this order.  `AuthTokenInstrumentor` does the
same in services that validate tokens with keystonemiddleware.
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
    TESTED_KEYSTONES,
    _instruments,
    _instruments_auth_token,
    untested_keystone,
)
from keylag_otel.seams import SEAMS
from keylag_otel.version import __version__

__all__ = ["AuthTokenInstrumentor", "KeystoneInstrumentor", "__version__"]

LOG = logging.getLogger("keylag_otel")


def _warn_if_untested() -> None:
    untested = untested_keystone()
    if untested:
        LOG.warning(
            "keylag is not tested with Keystone %s, only with %s to %s: it binds the "
            "seams that it finds; `keylag-otel check` lists them",
            *(untested, TESTED_KEYSTONES[0], TESTED_KEYSTONES[-1]),
        )


class KeystoneInstrumentor(SeamInstrumentor):
    """Instruments Keystone, SQLAlchemy and dogpile.cache."""

    seams = SEAMS
    host = "keystone.server.flask.core"

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the supported releases of Keystone."""
        return _instruments

    def _instrument(self, **kwargs: Any) -> None:
        attempt("check the version of Keystone", _warn_if_untested)
        super()._instrument(**kwargs)
        attempt("apply patches again", patches.redo)
        attempt("start timing garbage collection", process.start)

    def _uninstrument(self, **kwargs: Any) -> None:
        attempt("stop timing garbage collection", process.stop)
        attempt("undo its patches", patches.undo)
        super()._uninstrument(**kwargs)


class AuthTokenInstrumentor(SeamInstrumentor):
    """Instruments keystonemiddleware.auth_token in a service that validates tokens."""

    seams = AUTH_TOKEN_SEAMS
    host = "keystonemiddleware.auth_token"

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the supported releases of keystonemiddleware."""
        return _instruments_auth_token

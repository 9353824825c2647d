"""auth_token from the request to the call to Keystone, in keystonemiddleware 10 on.

The outermost is `BaseAuthProtocol.__call__`, which answers for the service: what
is in front of it, and the sending of a streamed answer, is not seen.
"""

from __future__ import annotations

from functools import lru_cache, partial, wraps
from typing import Any

from keylag_otel.auth_token.calls import called
from keylag_otel.auth_token.configuration import remembered
from keylag_otel.auth_token.instruments import CACHE_OPERATION
from keylag_otel.auth_token.notes import (
    note_again,
    note_cache_error,
    note_cached,
    note_dead,
    note_lookup,
    note_not_accepted,
    note_reconnect,
)
from keylag_otel.auth_token.recording import SERVED, recorded
from keylag_otel.auth_token.spans import opened, traced
from keylag_otel.request import Measuring
from keylag_otel.seam import Seam
from keylag_otel.wrappers import Call, Maker, noted, noted_failure, timed

_PACKAGE = "keystonemiddleware.auth_token"
#: How many arguments a WSGI server gives: the environment and `start_response`.
_WSGI = 2


def measured_service(call: Any) -> Call:
    """Put the stopwatch around auth_token and all that it protects.

    Keystone's own middleware, which asks nobody, is left alone.
    """
    measuring = lru_cache(maxsize=1)(partial(Measuring, ledger=SERVED))

    @wraps(getattr(call, "func", call))
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        serve = call.__get__(self, type(self))
        if not (hasattr(self, "_identity_server") and len(args) == _WSGI):
            return serve(*args, **kwargs)
        return measuring().serve(serve, *args)

    return watched


def _token_cache(operation: str, watched: Maker) -> Seam:
    """Return the seam of a look-up or a change, each of them a round trip."""
    return Seam(
        f"{_PACKAGE}._cache",
        f"TokenCache.{operation}",
        (watched, recorded("cache", {CACHE_OPERATION: operation})),
    )


SEAMS = (
    # An attribute that makes the method which is called: webob's `wsgify`.
    Seam(
        _PACKAGE,
        "BaseAuthProtocol.__call__",
        (measured_service,),
        kind="descriptor",
    ),
    Seam(_PACKAGE, "AuthProtocol.__init__", (remembered,), expects=("self",)),
    Seam(
        _PACKAGE,
        "AuthProtocol.process_request",
        (opened, timed("other", "auth_token"), traced),
        expects=("self", "request"),
    ),
    Seam(_PACKAGE, "AuthProtocol.fetch_token", (noted_failure(note_not_accepted),)),
    _token_cache("get", timed("cache", after=note_lookup, failed=note_cache_error)),
    _token_cache("set", timed("cache", before=note_cached, failed=note_cache_error)),
    *(
        Seam(f"{_PACKAGE}._memcache_crypt", name, (timed("token_crypto"),))
        for name in ("derive_keys", "protect_data", "unprotect_data")
    ),
    # Whatever Keystone is waited for: the service's own token and the discovery of
    # Keystone's address are within.
    Seam(
        f"{_PACKAGE}._identity",
        "IdentityServer.verify_token",
        (opened, timed("keystone", before=note_again)),
    ),
    Seam(
        f"{_PACKAGE}._identity",
        "IdentityServer.www_authenticate_uri",
        (timed("keystone"),),
        kind="property",
    ),
    Seam(
        "requests.sessions",
        "Session.request",
        (called,),
        expects=("self", "method", "url"),
    ),
    Seam("keystoneauth1.session", "_Retries.__next__", (noted(note_reconnect),)),
    Seam("memcache", "_Host.mark_dead", (noted(note_dead),), optional=True),
)

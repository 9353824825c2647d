"""Seams of keystonemiddleware.auth_token, from release 10 on.

The outermost is `BaseAuthProtocol.__call__`.  Middleware outside of it is not timed,
nor is the sending of a streamed response.
"""

from __future__ import annotations

from functools import lru_cache, partial, wraps
from typing import Any

from keylag_otel.auth_token.calls import wrap_request
from keylag_otel.auth_token.configuration import wrap_init
from keylag_otel.auth_token.hooks import (
    count_cache_error,
    count_dead_server,
    count_online_validation,
    count_reauthentication,
    count_reconnect,
    count_rejected_token,
    count_token_lookup,
)
from keylag_otel.auth_token.instruments import CACHE_OPERATION
from keylag_otel.auth_token.recording import SERVICE_AGGREGATOR, record_duration
from keylag_otel.auth_token.spans import open_span, wrap_process_request
from keylag_otel.request import TimingMiddleware
from keylag_otel.seam import Seam
from keylag_otel.wrappers import Call, WrapperFactory, before_call, on_exception, timed

_PACKAGE = "keystonemiddleware.auth_token"
#: The number of WSGI arguments: the environment and `start_response`.
_WSGI = 2


def wrap_service(call: Any) -> Call:
    """Wrap auth_token to time it and the service behind it.

    Keystone's own subclass, which validates tokens by itself, is not timed.
    """
    middleware = lru_cache(maxsize=1)(
        partial(TimingMiddleware, aggregator=SERVICE_AGGREGATOR)
    )

    @wraps(getattr(call, "func", call))
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        serve = call.__get__(self, type(self))
        if not (hasattr(self, "_identity_server") and len(args) == _WSGI):
            return serve(*args, **kwargs)
        return middleware().serve(serve, *args)

    return wrapper


def _token_cache_seam(operation: str, wrapper: WrapperFactory) -> Seam:
    """Return the seam of a method of the token cache; each call is a round trip."""
    return Seam(
        f"{_PACKAGE}._cache",
        f"TokenCache.{operation}",
        (wrapper, record_duration("cache", {CACHE_OPERATION: operation})),
    )


SEAMS = (
    # A descriptor: webob's `wsgify`.
    Seam(
        _PACKAGE,
        "BaseAuthProtocol.__call__",
        (wrap_service,),
        kind="descriptor",
    ),
    Seam(_PACKAGE, "AuthProtocol.__init__", (wrap_init,), expects=("self",)),
    Seam(
        _PACKAGE,
        "AuthProtocol.process_request",
        (open_span, timed("other", "auth_token"), wrap_process_request),
        expects=("self", "request"),
    ),
    Seam(_PACKAGE, "AuthProtocol.fetch_token", (on_exception(count_rejected_token),)),
    _token_cache_seam(
        "get", timed("cache", after=count_token_lookup, on_error=count_cache_error)
    ),
    _token_cache_seam(
        "set",
        timed("cache", before=count_online_validation, on_error=count_cache_error),
    ),
    *(
        Seam(f"{_PACKAGE}._memcache_crypt", name, (timed("token_crypto"),))
        for name in ("derive_keys", "protect_data", "unprotect_data")
    ),
    # All waiting for Keystone, including the service's own token and discovery.
    Seam(
        f"{_PACKAGE}._identity",
        "IdentityServer.verify_token",
        (open_span, timed("keystone", before=count_reauthentication)),
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
        (wrap_request,),
        expects=("self", "method", "url"),
    ),
    Seam("keystoneauth1.session", "_Retries.__next__", (before_call(count_reconnect),)),
    Seam(
        "memcache", "_Host.mark_dead", (before_call(count_dead_server),), optional=True
    ),
)

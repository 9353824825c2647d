"""Hooks that count how auth_token validates tokens."""

from __future__ import annotations

from traceback import walk_tb
from typing import Any

from opentelemetry import trace

from keylag_otel.auth_token import instruments
from keylag_otel.auth_token.recording import record
from keylag_otel.auth_token.token_reuse import TOKEN_REUSE
from keylag_otel.counters import counter_id
from keylag_otel.request_timer import COUNTS, RequestTimer

_CALLS = COUNTS.index("cache_calls")

#: Result by the name of the exception that auth_token raises.
_FAILURES = {
    "InvalidToken": "refused",
    "HTTPServiceUnavailable": "unavailable",
    "EndpointNotFound": "unavailable",
    # auth_token does not catch it: the service responds with 500.
    "ConnectTimeout": "unavailable",
}
#: Result by the name of its context, if auth_token delegates the decision.
_CAUSES = dict.fromkeys(
    ("ServiceError", "ConnectFailure", "DiscoveryFailure", "RequestTimeout"),
    "unavailable",
)
#: What keystonemiddleware before 10.2 caches for a refused token.
_REFUSED = "invalid"

#: keystonemiddleware's default, for the simulated caches of a service that has none.
DEFAULT_CACHE_SECONDS = 300.0

_CACHE_ERRORS = {"QueueEmpty": "no_connection"}


def cache_seconds(cache: Any) -> float:
    """Return how long a service's token cache, and simulated ones, keep tokens."""
    seconds: float = cache._cache_time  # noqa: SLF001 - the host has no other
    return seconds if seconds > 0 else DEFAULT_CACHE_SECONDS


def _count_validation(timer: RequestTimer, validation: str, result: str) -> None:
    timer.increment(counter_id("auth_token_validations", validation, result))
    span = trace.get_current_span()
    span.set_attributes(
        {instruments.VALIDATION: validation, instruments.RESULT: result}
    )


def count_token_lookup(timer: RequestTimer, args: tuple[Any, ...], found: Any) -> None:
    """Count a hit or miss of the token cache, and record the age of the token."""
    cache, token = args[0], args[1]
    if not token:
        return
    timer.count(_CALLS)
    if found == _REFUSED:
        return
    hit = found is not None
    if hit:
        _count_validation(timer, "offline", "accepted")
    age, misses = TOKEN_REUSE.look_up(token, cache_seconds(cache), hit=hit)
    for times in misses:
        timer.increment(counter_id("replayed_misses", times))
    if age is not None:
        record("age", age, {instruments.CACHE_RESULT: "hit" if hit else "miss"})


def count_online_validation(
    timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count a token that Keystone accepted, before it is cached."""
    del kwargs
    cache, token, data = args[:3]
    timer.count(_CALLS)
    if data == _REFUSED:
        return
    _count_validation(timer, "online", "accepted")
    TOKEN_REUSE.record_validation(token, cache_seconds(cache))


def count_rejected_token(
    timer: RequestTimer, args: tuple[Any, ...], error: Exception
) -> None:
    """Count a token that was not accepted, by reason."""
    del args
    result = _CAUSES.get(type(error.__context__).__name__) or _FAILURES.get(
        type(error).__name__, "failed"
    )
    offline = result == "refused" and _raised_in(error) == "fetch_token"
    _count_validation(timer, "offline" if offline else "online", result)


def _raised_in(error: Exception) -> str:
    """Return the name of the function that raised an exception.

    auth_token itself refuses a token that it has cached as refused; a function that it
    calls refuses one after asking Keystone.
    """
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame.f_code.co_name


def count_cache_error(
    timer: RequestTimer, args: tuple[Any, ...], error: Exception
) -> None:
    """Count an exception of the token cache."""
    del args
    kind = _CACHE_ERRORS.get(type(error).__name__, "other")
    timer.increment(counter_id("token_cache_errors", kind))


def count_dead_server(
    timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count a server that python-memcached marks as dead."""
    del args, kwargs
    timer.increment(counter_id("token_cache_errors", "server_dead"))


def count_reauthentication(
    timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count a validation that is retried because Keystone refused the service."""
    retry = args[2] if len(args) > 2 else kwargs.get("retry", True)  # noqa: PLR2004
    if not retry:
        timer.increment(counter_id("retries", "service_refused"))


def count_reconnect(
    timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count a request that keystoneauth retries."""
    del args, kwargs
    timer.increment(counter_id("retries", "connection"))

"""What is noted of a service's request beside its time: how each token was judged."""

from __future__ import annotations

from traceback import walk_tb
from typing import Any

from opentelemetry import trace

from keylag_otel.auth_token import instruments
from keylag_otel.auth_token.recording import record
from keylag_otel.auth_token.replay import REPLAY
from keylag_otel.clock import COUNTS, Clock
from keylag_otel.tally import tally

_CALLS = COUNTS.index("cache_calls")

#: By the name of the exception with which auth_token gives up.
_FAILURES = {
    "InvalidToken": "refused",
    "HTTPServiceUnavailable": "unavailable",
    "EndpointNotFound": "unavailable",
    # Not caught by auth_token: the service answers 500.
    "ConnectTimeout": "unavailable",
}
#: And of the one behind it: auth_token may leave the decision to the service.
_CAUSES = dict.fromkeys(
    ("ServiceError", "ConnectFailure", "DiscoveryFailure", "RequestTimeout"),
    "unavailable",
)
#: What keystonemiddleware before 10.2 caches of a token that Keystone has refused.
_REFUSED = "invalid"

_CACHE_ERRORS = {"QueueEmpty": "no_connection"}


def _kept_seconds(cache: Any) -> float:
    """Return token_cache_time, as the token cache has it."""
    seconds: float = cache._cache_time  # noqa: SLF001 - the host has no other
    return seconds


def _judged(clock: Clock, validation: str, result: str) -> None:
    clock.tally(tally("auth_token_validations", validation, result))
    span = trace.get_current_span()
    span.set_attributes(
        {instruments.VALIDATION: validation, instruments.RESULT: result}
    )


def note_lookup(clock: Clock, args: tuple[Any, ...], found: Any) -> None:
    """Count what the token cache had, and how old it was."""
    cache, token = args[0], args[1]
    if not token:
        return
    clock.count(_CALLS)
    if found == _REFUSED:
        return
    hit = found is not None
    if hit:
        _judged(clock, "offline", "accepted")
    age, misses = REPLAY.looked_up(token, _kept_seconds(cache), hit=hit)
    for times in misses:
        clock.tally(tally("replayed_misses", times))
    if age is not None:
        record("age", age, {instruments.CACHE_RESULT: "hit" if hit else "miss"})


def note_cached(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a token that Keystone has accepted, and that is now to be cached."""
    del kwargs
    cache, token, data = args[:3]
    clock.count(_CALLS)
    if data == _REFUSED:
        return
    _judged(clock, "online", "accepted")
    REPLAY.validated(token, _kept_seconds(cache))


def note_not_accepted(clock: Clock, args: tuple[Any, ...], error: Exception) -> None:
    """Count a token that was not accepted, by what Keystone said, if anything."""
    del args
    result = _CAUSES.get(type(error.__context__).__name__) or _FAILURES.get(
        type(error).__name__, "failed"
    )
    offline = result == "refused" and _raised_in(error) == "fetch_token"
    _judged(clock, "offline" if offline else "online", result)


def _raised_in(error: Exception) -> str:
    """Return the name of the function that raised it.

    auth_token itself refuses what it has cached as refused; what refuses a token
    that Keystone was asked about is called by it.
    """
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame.f_code.co_name


def note_cache_error(clock: Clock, args: tuple[Any, ...], error: Exception) -> None:
    """Count a failure that the token cache did not keep to itself."""
    del args
    kind = _CACHE_ERRORS.get(type(error).__name__, "other")
    clock.tally(tally("token_cache_errors", kind))


def note_dead(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a server that python-memcached gives up for a while."""
    del args, kwargs
    clock.tally(tally("token_cache_errors", "server_dead"))


def note_again(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a validation that is made once more, since the service was refused."""
    retry = args[2] if len(args) > 2 else kwargs.get("retry", True)  # noqa: PLR2004
    if not retry:
        clock.tally(tally("retries", "service_refused"))


def note_reconnect(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a request that keystoneauth sends again after a pause."""
    del args, kwargs
    clock.tally(tally("retries", "connection"))

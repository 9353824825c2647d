"""Gauges of the configuration of auth_token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, Callable

from keylag_otel.auth_token import instruments
from keylag_otel.gauges import Observations
from keylag_otel.wrappers import Call, count_fault


@dataclass(frozen=True)
class MiddlewareConfiguration:
    """The configuration of one auth_token middleware."""

    strategy: str
    """``none``, ``mac`` or ``encrypt``."""
    cache: str
    """``memcached``, ``environment`` (the service's own), ``process`` or ``none``."""
    cache_seconds: int


#: A process may have several middlewares, usually with one configuration.
_SEEN: dict[MiddlewareConfiguration, None] = {}


def wrap_init(init: Call) -> Call:
    """Wrap ``AuthProtocol.__init__`` to register its configuration."""

    @wraps(init)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        try:
            _SEEN[_configuration_of(self._conf.get)] = None
        except Exception:
            count_fault(init)

    return wrapper


def _configuration_of(get: Callable[[str], Any]) -> MiddlewareConfiguration:
    seconds = int(get("token_cache_time"))
    return MiddlewareConfiguration(
        strategy=get("memcache_security_strategy").lower(),
        cache=_place_of_tokens(get, seconds),
        cache_seconds=seconds,
    )


def _place_of_tokens(get: Callable[[str], Any], seconds: int) -> str:
    if seconds < 0:
        return "none"
    if get("cache"):
        return "environment"
    return "memcached" if get("memcached_servers") else "process"


def _cache_time() -> Observations:
    """Yield the shortest token_cache_time in seconds."""
    if _SEEN:
        yield min(one.cache_seconds for one in _SEEN), {}


def _configuration_info() -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield 1 with the other options as attributes."""
    for one in list(_SEEN):
        yield (
            1,
            {instruments.STRATEGY: one.strategy, instruments.CACHE: one.cache},
        )


#: By the keys of ``instruments.GAUGES``.
CALLBACKS: dict[str, Callable[[], Observations]] = {
    "cache_time": _cache_time,
    "configuration_info": _configuration_info,
}

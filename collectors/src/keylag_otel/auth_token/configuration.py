"""How auth_token is configured here: what decides how often Keystone is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, Callable

from keylag_otel.auth_token import instruments
from keylag_otel.gauges import Readings
from keylag_otel.wrappers import Call, fault


@dataclass(frozen=True)
class Choices:
    """The choices of one auth_token middleware."""

    strategy: str
    """``none``, ``mac`` or ``encrypt``."""
    cache: str
    """``memcached``, ``environment`` (the service's own) or ``process``."""
    cache_seconds: int


#: A process may have several pipelines, usually of one configuration.
_SEEN: dict[Choices, None] = {}


def remembered(init: Call) -> Call:
    """Remember the choices of each middleware that is made."""

    @wraps(init)
    def watched(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        try:
            _SEEN[_choices(self._conf.get)] = None
        except Exception:
            fault(init)

    return watched


def _choices(get: Callable[[str], Any]) -> Choices:
    servers = "memcached" if get("memcached_servers") else "process"
    return Choices(
        strategy=get("memcache_security_strategy").lower(),
        cache="environment" if get("cache") else servers,
        cache_seconds=int(get("token_cache_time")),
    )


def _cache_time() -> Readings:
    """Yield the shortest time for which a token is believed."""
    if _SEEN:
        yield min(one.cache_seconds for one in _SEEN), {}


def _configuration_info() -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield 1 with the choices that have no number."""
    for one in list(_SEEN):
        yield (
            1,
            {instruments.STRATEGY: one.strategy, instruments.CACHE: one.cache},
        )


#: By the name of the instrument in ``instruments.GAUGES``.
READ: dict[str, Callable[[], Readings]] = {
    "cache_time": _cache_time,
    "configuration_info": _configuration_info,
}

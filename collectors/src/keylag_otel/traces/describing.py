"""What a call is called as a span, of which kind it is, and its attributes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from opentelemetry.trace import SpanKind

from keylag_otel import instruments
from keylag_otel.model import CELLS
from keylag_otel.statements import tables_of
from keylag_otel.tally import attributes_of
from keylag_otel.traces import attributes as names
from keylag_otel.traces.events import SPAN, Call

_OURS = "keylag_otel."
#: Notes that are no attributes: tallies have attributes of their own.
_HIDDEN = (None, SPAN)
_REGION = instruments.CACHE_REGION
_LOCAL_MISS = {
    instruments.CACHE_LAYER: "request_local",
    instruments.CACHE_RESULT: "miss",
}

#: What the module of a cache's backend is called by, and the server it asks.
_SERVERS = {
    "memcache": "memcached",
    "redis": "redis",
    "mongo": "mongodb",
    "etcd": "etcd",
}


def described(call: Call) -> tuple[str, SpanKind, dict[str, Any]]:
    """Return a span's name, kind and attributes."""
    attributes = attributes_of_call(call)
    asks = names.DB_SYSTEM in attributes or attributes[instruments.PHASE] == "ldap"
    kind = SpanKind.CLIENT if asks else SpanKind.INTERNAL
    return _name(call, attributes), kind, attributes


def attributes_of_call(call: Call) -> dict[str, Any]:
    """Return where a call's own time goes, what it called, and what was noted."""
    phase, operation = CELLS[call.cell]
    found: dict[str, Any] = {
        instruments.PHASE: phase,
        instruments.OPERATION: operation,
    }
    if call.callee is not None:
        found[names.FUNCTION] = _function(call.callee)
    if call.times > 1:
        found[names.CALLS] = call.times
    found.update((name, value) for name, value in call.notes if name not in _HIDDEN)
    found.update(_tallied(call))
    if names.DB_TEXT in found:
        found[names.DB_SUMMARY] = summary(found[names.DB_TEXT])
    if found.get(instruments.CACHE_LAYER) == "backend":
        found.update(_asked(call.callee, found))
    return found


def _function(callee: Any) -> str:
    return f"{callee.__module__}.{callee.__qualname__}"


def _name(call: Call, attributes: dict[str, Any]) -> str:
    """Return a name from a closed set: no statement, and nothing of a request."""
    if names.DB_SUMMARY in attributes:
        return str(attributes[names.DB_SUMMARY])
    if call.callee is None or call.callee.__module__.startswith(_OURS):
        return str(attributes[instruments.PHASE])
    return str(call.callee.__qualname__)


def _tallied(call: Call) -> dict[str, Any]:
    """Return what was counted in a call.

    A memoized function looks up its region's id too, which is in a region of its
    own: the last that was counted is what the call was for.  What the request-local
    layer missed was looked up in the backend, which is a call of its own.
    """
    tallies = [attributes_of(value) for name, value in call.notes if name is None]
    found: dict[str, Any] = {}
    for _, attributes in tallies:
        is_of_it = attributes.get(_REGION) == tallies[-1][1].get(_REGION)
        if is_of_it and not _LOCAL_MISS.items() <= attributes.items():
            found.update(attributes)
    return found


def _asked(backend_call: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Return which server the cache's backend asked, if it asks one."""
    for word, server in _SERVERS.items():
        if word in backend_call.__module__:
            operation = found[instruments.CACHE_OPERATION]
            region = found[_REGION]
            return {
                names.DB_SYSTEM: server,
                names.DB_OPERATION: operation,
                names.DB_SUMMARY: f"{operation} {region}",
            }
    return {}


@lru_cache(maxsize=1024)
def summary(statement: str) -> str:
    """Return the verb and the tables of a statement: ``SELECT user local_user``."""
    verb = statement.split(None, 1)[:1]
    return " ".join([*(word.upper() for word in verb), *tables_of(statement)])

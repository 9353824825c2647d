"""Name, kind and attributes of the span of a call."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from opentelemetry.trace import SpanKind

from keylag_otel import instruments
from keylag_otel.counters import counter_attributes
from keylag_otel.model import CELLS
from keylag_otel.statements import tables_of
from keylag_otel.traces import attribute_keys as keys
from keylag_otel.traces.events import SPAN_ANNOTATION, TracedCall

_OURS = "keylag_otel."
#: Annotations that are no attributes: counters have attributes of their own.
_HIDDEN = (None, SPAN_ANNOTATION)
_REGION = instruments.CACHE_REGION

#: Server by a part of the module name of a cache backend.
_SERVERS = {
    "memcache": "memcached",
    "redis": "redis",
    "mongo": "mongodb",
    "etcd": "etcd",
}


def describe_span(call: TracedCall) -> tuple[str, SpanKind, dict[str, Any]]:
    """Return name, kind and attributes of a span."""
    attributes = call_attributes(call)
    is_client = keys.DB_SYSTEM in attributes or attributes[instruments.PHASE] == "ldap"
    kind = SpanKind.CLIENT if is_client else SpanKind.INTERNAL
    return _span_name(call, attributes), kind, attributes


def call_attributes(call: TracedCall) -> dict[str, Any]:
    """Return cell, function, annotations and counters of a call as attributes."""
    phase, operation = CELLS[call.cell]
    found: dict[str, Any] = {
        instruments.PHASE: phase,
        instruments.OPERATION: operation,
    }
    if call.callee is not None:
        found[keys.FUNCTION] = _function(call.callee)
    if call.count > 1:
        found[keys.CALLS] = call.count
    found.update(
        (name, value) for name, value in call.annotations if name not in _HIDDEN
    )
    found.update(_counter_attributes(call))
    if keys.DB_TEXT in found:
        found[keys.DB_SUMMARY] = query_summary(found[keys.DB_TEXT])
    if found.get(instruments.CACHE_LAYER) == "backend":
        found.update(_server_attributes(call.callee, found))
    return found


def _function(callee: Any) -> str:
    return f"{callee.__module__}.{callee.__qualname__}"


def _span_name(call: TracedCall, attributes: dict[str, Any]) -> str:
    """Return a name from a closed set, without the text of statements."""
    if keys.DB_SUMMARY in attributes:
        return str(attributes[keys.DB_SUMMARY])
    if call.callee is None or call.callee.__module__.startswith(_OURS):
        return str(attributes[instruments.PHASE])
    return str(call.callee.__qualname__)


def _counter_attributes(call: TracedCall) -> dict[str, Any]:
    """Return the attributes of the counters that a call incremented.

    A memoized function also looks up the id of its region, in another region: the last
    counter has the region of the call.
    """
    counters = [
        counter_attributes(value) for name, value in call.annotations if name is None
    ]
    found: dict[str, Any] = {}
    for _, attributes in counters:
        if attributes.get(_REGION) == counters[-1][1].get(_REGION):
            found.update(attributes)
    return found


def _server_attributes(backend_call: Any, found: dict[str, Any]) -> dict[str, Any]:
    for part, server in _SERVERS.items():
        if part in backend_call.__module__:
            operation = found[instruments.CACHE_OPERATION]
            region = found[_REGION]
            return {
                keys.DB_SYSTEM: server,
                keys.DB_OPERATION: operation,
                keys.DB_SUMMARY: f"{operation} {region}",
            }
    return {}


@lru_cache(maxsize=1024)
def query_summary(statement: str) -> str:
    """Return verb and tables of a statement: ``SELECT user local_user``."""
    verb = statement.split(None, 1)[:1]
    return " ".join([*(word.upper() for word in verb), *tables_of(statement)])

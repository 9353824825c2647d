"""A sample trace: a validation with three statements, as OTLP JSON."""

from collections.abc import Sequence
from typing import Any

TRACE_ID = "0f9b6b8e-3bd6-4d3c-8e66-4b6bd0c9a3f5"
OTEL_ID = TRACE_ID.replace("-", "")
PROJECT = "SELECT project.id FROM project WHERE project.id = %(pk_1)s"
ROLES = "SELECT role.id FROM role JOIN a ON a.r = role.id WHERE role.id IN (%s, %s)"
CANARY = "canary-value"

Span = tuple[str, str, str, int, int, dict[str, str]]
"""id, parent, name, start and end in ms, attributes."""
SPANS: Sequence[Span] = (
    ("c1", "b3", "SELECT", 52, 53, {"db.query.text": ROLES, "enduser.id": CANARY}),
    ("c2", "b3", "SELECT", 60, 61, {"db.query.text": PROJECT}),
    (
        *("a0", "", "GET", 0, 100),
        {"http.request.method": "GET", "http.route": "/v3/auth/tokens"},
    ),
    ("b1", "a0", "SELECT", 10, 14, {"db.query.text": PROJECT}),
    (
        *("b2", "a0", "get", 20, 25),
        {"keystone.phase": "cache", "keystone.cache.layer": "backend"},
    ),
    (
        *("b3", "a0", "roles", 50, 70),
        {"keystone.phase": "orm", "keystone.operation": "roles"},
    ),
)


def otlp() -> dict[str, Any]:
    """Return the spans in OTLP JSON, as two resources."""
    spans = [_otlp_span(span) for span in SPANS]
    return {"resourceSpans": [_group(spans[:3]), _group(spans[3:])]}


def _group(spans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    name = {"key": "service.name", "value": {"stringValue": "keystone"}}
    return {"resource": {"attributes": [name]}, "scopeSpans": [{"spans": spans}]}


def _otlp_span(span: Span) -> dict[str, Any]:
    own, parent, name, start, end, found = span
    origin = 1_795_240_444_000_000_000
    return {
        "traceId": OTEL_ID,
        "spanId": own,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(origin + start * 1_000_000),
        "endTimeUnixNano": str(origin + end * 1_000_000),
        "attributes": [
            {"key": key, "value": {"stringValue": value}}
            for key, value in found.items()
        ],
    }

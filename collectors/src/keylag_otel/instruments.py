"""Every metric of this package: name, unit and description, declared once.

OpenTelemetry's semantic conventions come first; what they have no name for is
``keystone.*``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Instrument:
    """The name, UCUM unit and description of a metric."""

    name: str
    unit: str
    description: str


REQUEST_DURATION = Instrument(
    "http.server.request.duration",
    "s",
    "Wall time of a request at the outermost WSGI layer",
)
#: Seconds, as the Keystone-in-Rust metrics catalogue (ADR 31) has them, so that
#: one dashboard serves both servers.
DURATION_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0),
)

PHASE_TIME = Instrument(
    "keystone.request.phase.time",
    "s",
    "Self time of requests by phase and operation; its sum is their wall time",
)

#: By the name of the count in ``keylag_otel.clock.COUNTS``.
COUNTERS = {
    "sql_statements": Instrument(
        "keystone.request.sql.statements",
        "{statement}",
        "SQL statements that requests sent",
    ),
    "cache_calls": Instrument(
        "keystone.request.cache.calls",
        "{call}",
        "Calls that requests made to the cache backend, each a round trip",
    ),
}

METHOD = "http.request.method"
ROUTE = "http.route"
STATUS = "http.response.status_code"
AUTH_METHOD = "keystone.auth.method"
PHASE = "keystone.phase"
OPERATION = "keystone.operation"

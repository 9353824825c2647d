"""Keys of the attributes that only spans have.

They follow OpenTelemetry's semantic conventions; all others are ``keystone.*``.
"""

from __future__ import annotations

DB_SYSTEM = "db.system.name"
DB_SUMMARY = "db.query.summary"
DB_TEXT = "db.query.text"
DB_OPERATION = "db.operation.name"
FUNCTION = "code.function.name"

#: The number of calls of a collapsed span.
CALLS = "keystone.calls"
#: True on a request that reached the event limit.
CUT = "keystone.trace.cut"

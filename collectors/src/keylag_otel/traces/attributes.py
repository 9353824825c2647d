"""The attributes that spans have and metrics have not, declared once.

OpenTelemetry's semantic conventions come first; what they have no name for is
``keystone.*``.
"""

from __future__ import annotations

DB_SYSTEM = "db.system.name"
DB_SUMMARY = "db.query.summary"
DB_TEXT = "db.query.text"
DB_OPERATION = "db.operation.name"
FUNCTION = "code.function.name"

#: How many calls a span stands for, if it is more than one.
CALLS = "keystone.calls"
#: True on a request that had more events than are kept.
CUT = "keystone.trace.cut"

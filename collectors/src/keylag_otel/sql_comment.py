"""A constant comment that tells the database what a statement is for.

    SELECT .../*keylag:route='POST /v3/auth/tokens',operation='validate'*/

pt-query-digest takes a blank between the two for a part of the statement, so
there is none.  The comment holds a route template and an operation, never an
id, so that a slow log can be split by them.  Off by default; switched on by
KEYLAG_SQL_COMMENT.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import quote

from keylag_otel import environment
from keylag_otel.ledger import route_template
from keylag_otel.model import OPERATIONS, PHASE_BITS

_SAFE = " /{}:-_."


class Switch:
    """Whether statements are commented; read when the process starts."""

    on = environment.sql_comment()


@lru_cache(maxsize=1024)
def comment(method: str, route: str, operation: str) -> str:
    """Return the comment; directly behind a statement, it leaves its digest alone."""
    name = quote(f"{method} {route_template(route)}", safe=_SAFE)
    # A driver that formats statements would take a per cent sign for its own.
    return f"/*keylag:route='{name}',operation='{operation}'*/".replace("%", "%%")


def commented(statement: Any, clock: Any) -> Any:
    """Return the statement with its comment, or as it is while switched off."""
    if not Switch.on or clock.route is None or not isinstance(statement, str):
        return statement
    return statement + comment(
        clock.method, clock.route, OPERATIONS[clock.at >> PHASE_BITS]
    )

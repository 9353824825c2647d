"""A constant comment that tells the database what a statement is for.

    SELECT .../*keylag:route='POST /v3/auth/tokens',operation='validate'*/

pt-query-digest takes a blank between the two for a part of the statement, so
there is none.  The comment holds a route template and an operation, never an
id, so that a slow log can be split by them.  Off by default; switched on by
KEYLAG_SQL_COMMENT.
"""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import Any
from urllib.parse import quote

from keylag_otel import environment
from keylag_otel.clock import Clock, current
from keylag_otel.ledger import route_template
from keylag_otel.model import OPERATIONS, PHASE_BITS
from keylag_otel.wrappers import Call, fault

_SAFE = " /{}:-_."


@lru_cache(maxsize=1024)
def comment(method: str, route: str, operation: str) -> str:
    """Return the comment; directly behind a statement, it leaves its digest alone."""
    name = quote(f"{method} {route_template(route)}", safe=_SAFE)
    # A driver that formats statements would take a per cent sign for its own.
    return f"/*keylag:route='{name}',operation='{operation}'*/".replace("%", "%%")


def commented(statement: Any, clock: Clock) -> Any:
    """Return a statement with its comment, or as it is where its route is not known."""
    if clock.route is None or not isinstance(statement, str):
        return statement
    return statement + comment(
        clock.method, clock.route, OPERATIONS[clock.at >> PHASE_BITS]
    )


def commenting(execute: Call) -> Call:
    """Comment what a dialect executes; as it is while that is switched off."""
    if not environment.sql_comment():
        return execute

    @wraps(execute)
    def commenting_execute(
        self: Any, cursor: Any, statement: Any, *args: Any, **kwargs: Any
    ) -> Any:
        text, clock = statement, current()
        try:
            if clock is not None:
                text = commented(statement, clock)
        except Exception:
            fault(execute)
        return execute(self, cursor, text, *args, **kwargs)

    return commenting_execute

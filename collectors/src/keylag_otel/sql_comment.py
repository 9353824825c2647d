"""A comment with route and operation at the end of each SQL statement.

    SELECT .../*keylag:route='POST /v3/auth/tokens',operation='validate'*/

It lets a slow log be grouped by route and operation.  Both are closed sets without
ids.  There is no blank before the comment, because pt-query-digest would count it as
a part of the statement.  KEYLAG_SQL_COMMENT enables it.
"""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import Any
from urllib.parse import quote

from keylag_otel import environment
from keylag_otel.model import OPERATIONS, PHASE_BITS
from keylag_otel.request_aggregator import route_template
from keylag_otel.request_timer import RequestTimer, current_timer
from keylag_otel.wrappers import Call, count_fault

_SAFE = " /{}:-_."


@lru_cache(maxsize=1024)
def comment(method: str, route: str, operation: str) -> str:
    """Return the comment to append to a statement; it keeps the fingerprint."""
    name = quote(f"{method} {route_template(route)}", safe=_SAFE)
    # Drivers format statements with %.
    return f"/*keylag:route='{name}',operation='{operation}'*/".replace("%", "%%")


def add_comment(statement: Any, timer: RequestTimer) -> Any:
    """Return a statement with its comment, or unchanged if its route is unknown."""
    if timer.route is None or not isinstance(statement, str):
        return statement
    return statement + comment(
        timer.method, timer.route, OPERATIONS[timer.current_cell >> PHASE_BITS]
    )


def wrap_execute(execute: Call) -> Call:
    """Wrap a dialect's execution to add comments, if they are enabled."""
    if not environment.sql_comment():
        return execute

    @wraps(execute)
    def execute_with_comment(
        self: Any, cursor: Any, statement: Any, *args: Any, **kwargs: Any
    ) -> Any:
        text, timer = statement, current_timer()
        try:
            if timer is not None:
                text = add_comment(statement, timer)
        except Exception:
            count_fault(execute)
        return execute(self, cursor, text, *args, **kwargs)

    return execute_with_comment

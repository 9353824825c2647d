"""The breakdown model: phases, operations, cells and categories.

The wall time of a request is the sum of its self times by cell.  A *cell* is a pair
of a *phase*, what the thread is doing, and an *operation*, the step of Keystone that
it does it for.  Its number is ``operation << PHASE_BITS | phase``.
"""

from __future__ import annotations

from collections.abc import Mapping

PHASES = (
    "other",
    "wsgi",
    "sql",
    "sql_pool",
    "orm",
    "cache",
    "password_hash",
    "token_crypto",
    "revocation_match",
    "policy",
    "ldap",
    "notification",
    "render",
    "timestamps",
    "schema",
    "keystone",
)

OPERATIONS = (
    "other",
    "authenticate",
    "scope",
    "issue",
    "validate",
    "check_revocation",
    "roles",
    "catalog",
    "enforce",
    "render",
    "audit",
    "auth_token",
)

NS_PER_SECOND = 1e9

PHASE_BITS = 4
PHASE_MASK = (1 << PHASE_BITS) - 1

#: Cells are below this.
CELL_LIMIT = 256

#: The most events that are recorded of a request; later ones are dropped.
EVENT_LIMIT = 32768

#: Single calls whose durations are counted in buckets: a key of
#: ``instruments.CALL_DURATIONS`` and a value of its attribute.  A *kind* is an index.
CALL_KINDS = (
    ("cache", "get"),
    ("cache", "set"),
    ("cache", "delete"),
    ("sql", "connect"),
    ("sql", "ping"),
    ("sql", "read"),
    ("sql", "write"),
    ("sql", "commit"),
    ("sql", "rollback"),
)

#: Upper bounds of the buckets of single calls, in nanoseconds: from a server on the
#: same machine to the time-outs of clients.
CALL_BOUNDS = tuple(
    microseconds * 1000
    for microseconds in (
        *(50, 100, 250, 500),
        *(1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000),
        *(1_000_000, 2_500_000, 5_000_000),
    )
)

#: Categories in display order.
CATEGORIES = (
    "sql",
    "cache",
    "revocation",
    "password_hash",
    "token_crypto",
    "orm",
    "other",
)

_CATEGORY_OF_OPERATION = {"check_revocation": "revocation"}
_CATEGORY_OF_PHASE = {
    "sql": "sql",
    "sql_pool": "sql",
    "cache": "cache",
    "password_hash": "password_hash",
    "token_crypto": "token_crypto",
    "orm": "orm",
}


def cell_of(phase: str, operation: str) -> int:
    """Return the cell of a phase and an operation; raise ValueError if unknown."""
    return OPERATIONS.index(operation) << PHASE_BITS | PHASES.index(phase)


def _category(phase: str, operation: str) -> str:
    by_operation = _CATEGORY_OF_OPERATION.get(operation)
    return by_operation or _CATEGORY_OF_PHASE.get(phase, "other")


CELLS: Mapping[int, tuple[str, str]] = {
    cell_of(phase, operation): (phase, operation)
    for operation in OPERATIONS
    for phase in PHASES
}
"""(phase, operation) by cell."""

CATEGORY_OF_CELL: Mapping[int, str] = {
    cell: _category(phase, operation) for cell, (phase, operation) in CELLS.items()
}
"""Category by cell; each cell belongs to exactly one."""

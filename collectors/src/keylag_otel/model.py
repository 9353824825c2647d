"""The breakdown model: what a request's time is divided into.

A request's wall time is the sum of self times over (phase, operation).
The *phase* says what the thread was doing, the *operation* which step of
Keystone it was doing it for.  A pair of both is a *cell*; inside a process a
cell is one small integer, ``operation << PHASE_BITS | phase``.
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

PHASE_BITS = 4
PHASE_MASK = (1 << PHASE_BITS) - 1

#: Every cell is below this.
CELL_LIMIT = 256

#: As many events of one request are written down, for its trace; what comes after
#: them is not.
EVENT_LIMIT = 32768

#: The categories, in the order in which they are shown.
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
    """Return the cell of a phase and an operation; ValueError if unknown."""
    return OPERATIONS.index(operation) << PHASE_BITS | PHASES.index(phase)


def _category(phase: str, operation: str) -> str:
    by_operation = _CATEGORY_OF_OPERATION.get(operation)
    return by_operation or _CATEGORY_OF_PHASE.get(phase, "other")


CELLS: Mapping[int, tuple[str, str]] = {
    cell_of(phase, operation): (phase, operation)
    for operation in OPERATIONS
    for phase in PHASES
}
"""Cell to (phase, operation)."""

CATEGORY_OF_CELL: Mapping[int, str] = {
    cell: _category(phase, operation) for cell, (phase, operation) in CELLS.items()
}
"""Cell to category; every cell belongs to exactly one."""

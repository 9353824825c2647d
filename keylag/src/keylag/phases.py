"""The words of a breakdown: phases, operations and the categories they form.

A request's wall time is the sum of self times over (phase, operation) cells.
The seven categories are another partition of the same cells, so they add
up to the same wall time.
"""

from collections.abc import Mapping
from typing import Final

Cell = tuple[str, str]
"""(phase, operation): what the thread did, and for which step of Keystone."""

PHASES: Final = (
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
    "wsgi",
    "other",
)

OPERATIONS: Final = (
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
    "other",
)

CATEGORY_NAMES: Final[Mapping[str, str]] = {
    "sql": "SQL",
    "cache": "cache",
    "revocation": "revocation check",
    "password_hash": "password hash",
    "token_crypto": "token crypto",
    "orm": "ORM",
    "other": "other",
}
"""The categories in the order of every table and bar, in words."""

CATEGORIES: Final = tuple(CATEGORY_NAMES)

_CATEGORY_OF_PHASE: Final[Mapping[str, str]] = {
    "sql": "sql",
    "sql_pool": "sql",
    "cache": "cache",
    "password_hash": "password_hash",
    "token_crypto": "token_crypto",
    "orm": "orm",
}
_CATEGORY_OF_OPERATION: Final[Mapping[str, str]] = {"check_revocation": "revocation"}


def category_of(cell: Cell) -> str:
    """Return the category of a cell; the operation decides before the phase."""
    phase, operation = cell
    by_phase = _CATEGORY_OF_PHASE.get(phase, "other")
    return _CATEGORY_OF_OPERATION.get(operation, by_phase)


def in_order(names: set[str], known: tuple[str, ...]) -> list[str]:
    """Sort names as `known` has them, then unknown ones by the alphabet."""
    rank = {name: number for number, name in enumerate(known)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))

"""The phases, operations and categories of a breakdown.

The wall time of a request is the sum of the self times of its cells.  Each cell
belongs to one of seven categories, so the categories add up to the same wall time.
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
"""Display names of the categories, in the order of all tables and bars."""

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
    """Return the category of a cell; its operation takes precedence over its phase."""
    phase, operation = cell
    by_phase = _CATEGORY_OF_PHASE.get(phase, "other")
    return _CATEGORY_OF_OPERATION.get(operation, by_phase)


def sort_known_first(names: set[str], known: tuple[str, ...]) -> list[str]:
    """Return known names in the order of `known`, then the others alphabetically."""
    rank = {name: number for number, name in enumerate(known)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))

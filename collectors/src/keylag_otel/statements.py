"""SQL statements: how many, for which part of Keystone, and how they ended."""

from __future__ import annotations

import re
from typing import Any

from keylag_otel.clock import COUNTS, Clock, executed, stated
from keylag_otel.tally import tally
from keylag_otel.traces.attributes import DB_SYSTEM, DB_TEXT
from keylag_otel.wrappers import Call, timed

#: Part of Keystone to its tables, the most telling first: a statement that joins
#: several belongs to the first part that one of them is in.
TABLE_CLASSES = {
    "revocation_event": "revocation_event",
    "user+password": (
        "user local_user nonlocal_user federated_user password user_option"
    ),
    "assignment": "assignment system_assignment",
    "application_credential": (
        "application_credential application_credential_role "
        "application_credential_access_rule access_rule"
    ),
    "trust": "trust trust_role",
    "group": "group user_group_membership expiring_user_group_membership",
    "role": "role role_option implied_role",
    "catalog": (
        "endpoint service region endpoint_group project_endpoint "
        "project_endpoint_group policy_association"
    ),
    "project": "project project_tag project_option",
    "id_mapping": "id_mapping",
    "federation": (
        "identity_provider idp_remote_ids federation_protocol mapping service_provider"
    ),
    "credential": "credential",
    "oauth1": "consumer request_token access_token",
    "limit": "limit registered_limit",
    "policy": "policy",
    "domain_config": "whitelisted_config sensitive_config config_register",
}
_TABLE = re.compile(
    r"\b(?:FROM|JOIN|INTO|UPDATE)\s+\(*\s*[`\"]?(\w+)[`\"]?"
    r"((?:\s*,\s*[`\"]?\w+[`\"]?)*)",
    re.IGNORECASE,
)
_NAME = re.compile(r"\w+")
_NO_TABLE = "SELECT"  # FROM (SELECT ...

#: By the number that MySQL and MariaDB give an error.
_ERRORS = {
    1205: "lock_timeout",
    1213: "deadlock",
    2006: "disconnect",
    2013: "disconnect",
    2055: "disconnect",
}

#: SQLAlchemy keeps the text of a compiled statement, so the same few hundred
#: strings come again.  Should somebody generate texts, start over.
_KNOWN_LIMIT = 2048
#: Longer ones name many values one by one, hardly ever as many again.
_LONGEST_KNOWN = 16_384
_known: dict[str, tuple[int, int]] = {}


def tables_of(statement: str) -> list[str]:
    """Return the tables that a statement names, each once, in their order."""
    names = (
        name
        for first, more in _TABLE.findall(statement)
        for name in (first, *_NAME.findall(more))
        if name != _NO_TABLE
    )
    return list(dict.fromkeys(names))


def table_class(statement: str) -> str:
    """Return which part of Keystone a statement is for; `other` if none."""
    names = set(tables_of(statement))
    for part, tables in TABLE_CLASSES.items():
        if not names.isdisjoint(tables.split()):
            return part
    return "other"


def _tallies(statement: str) -> tuple[int, int]:
    if len(_known) >= _KNOWN_LIMIT:
        _known.clear()
    part = table_class(statement)
    found = (tally("sql_statements", part), tally("sql_rows", part))
    if len(statement) <= _LONGEST_KNOWN:
        _known[statement] = found
    return found


def note_error(clock: Clock, args: tuple[Any, ...], error: Exception) -> None:
    """Count a statement that failed, by its part of Keystone and by what happened."""
    number = error.args[0] if error.args else None
    kind = _ERRORS.get(number, "other") if isinstance(number, int) else "other"
    clock.tally(tally("sql_errors", table_class(args[2]), kind))


def watch_statement(call: Call) -> Call:
    """Count a dialect's execution of a statement, its rows and its errors."""
    counted = stated(COUNTS.index("sql_statements"), DB_SYSTEM, DB_TEXT)
    done = executed(_known, _tallies)
    return timed("sql", before=counted, after=done, failed=note_error)(call)


def note_connect(clock: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a connection to the database."""
    del args, kwargs
    clock.tally(tally("sql_connects"))


def note_checkout(clock: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a connection taken from the pool, and whether it has to be waited for."""
    del kwargs
    pool = args[0]
    clock.tally(tally("sql_pool_checkouts"))
    if not pool.checkedin() and 0 <= pool._max_overflow <= pool.overflow():  # noqa: SLF001
        clock.tally(tally("sql_pool_waits"))


def note_retry(clock: Any, args: tuple[Any, ...], retried: Any) -> None:
    """Count what oslo.db will run again."""
    del args
    if retried:
        clock.tally(tally("sql_retries"))

"""Hooks that count SQL statements, rows and errors by table class."""

from __future__ import annotations

import re
from typing import Any

from keylag_otel.counters import counter_id
from keylag_otel.model import CALL_KINDS
from keylag_otel.request_timer import (
    COUNTS,
    RequestTimer,
    count_statement,
    record_statement,
)
from keylag_otel.traces.attribute_keys import DB_SYSTEM, DB_TEXT
from keylag_otel.wrappers import Call, WrapperFactory, timed

#: Tables by table class, most specific first: a statement that joins several tables
#: belongs to the first class with one of them.
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

#: Kinds of single calls: statements that read and write.
_KINDS = CALL_KINDS.index(("sql", "read")), CALL_KINDS.index(("sql", "write"))

#: Kinds of errors by error number of MySQL and MariaDB.
_ERRORS = {
    1205: "lock_timeout",
    1213: "deadlock",
    2006: "disconnect",
    2013: "disconnect",
    2055: "disconnect",
}

#: SQLAlchemy caches compiled statements, so a few hundred texts recur.  The cache is
#: cleared at this size, in case texts are generated.
_CACHE_LIMIT = 2048
#: Longer texts list many values and hardly ever recur.
_LONGEST_CACHED = 16_384
_cached_ids: dict[str, tuple[int, int]] = {}


def tables_of(statement: str) -> list[str]:
    """Return the distinct tables of a statement, in their order."""
    names = (
        name
        for first, more in _TABLE.findall(statement)
        for name in (first, *_NAME.findall(more))
        if name != _NO_TABLE
    )
    return list(dict.fromkeys(names))


def table_class(statement: str) -> str:
    """Return the table class of a statement, or `other`."""
    names = set(tables_of(statement))
    for part, tables in TABLE_CLASSES.items():
        if not names.isdisjoint(tables.split()):
            return part
    return "other"


def _counter_ids(statement: str) -> tuple[int, int]:
    if len(_cached_ids) >= _CACHE_LIMIT:
        _cached_ids.clear()
    part = table_class(statement)
    found = (counter_id("sql_statements", part), counter_id("sql_rows", part))
    if len(statement) <= _LONGEST_CACHED:
        _cached_ids[statement] = found
    return found


def count_sql_error(
    timer: RequestTimer, args: tuple[Any, ...], error: Exception
) -> None:
    """Count a failed statement by table class and kind of error."""
    timer.increment(counter_id("sql_errors", table_class(args[2]), _kind(error)))


def count_commit_error(
    timer: RequestTimer, args: tuple[Any, ...], error: Exception
) -> None:
    """Count a failed commit; a Galera cluster refuses those that conflict."""
    del args
    timer.increment(counter_id("sql_errors", "commit", _kind(error)))


def _kind(error: Exception) -> str:
    number = error.args[0] if error.args else None
    return _ERRORS.get(number, "other") if isinstance(number, int) else "other"


def wrap_statement(call: Call) -> Call:
    """Wrap a dialect's execution: time it, count statements, rows and errors."""
    before = record_statement(COUNTS.index("sql_statements"), DB_SYSTEM, DB_TEXT)
    after = count_statement(_cached_ids, _counter_ids)
    return timed(
        "sql", kinds=_KINDS, before=before, after=after, on_error=count_sql_error
    )(call)


def timed_driver_call(name: str) -> WrapperFactory:
    """Time a call of the driver that has no statement."""
    kind = CALL_KINDS.index(("sql", name))
    hooks: dict[str, Any] = {}
    if name == "commit":
        hooks["on_error"] = count_commit_error
    return timed("sql", kinds=(kind, kind), **hooks)


def count_connect(timer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a connection to the database."""
    del args, kwargs
    timer.increment(counter_id("sql_connects"))


def count_checkout(timer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a checkout from the pool, and whether it has to wait."""
    del kwargs
    pool = args[0]
    timer.increment(counter_id("sql_pool_checkouts"))
    if not pool.checkedin() and 0 <= pool._max_overflow <= pool.overflow():  # noqa: SLF001
        timer.increment(counter_id("sql_pool_waits"))


def count_retry(timer: Any, args: tuple[Any, ...], retried: Any) -> None:
    """Count an operation that oslo.db will retry."""
    del args
    if retried:
        timer.increment(counter_id("sql_retries"))

"""Declarations of all metrics of this package: name, unit, description, attributes.

Names follow OpenTelemetry's semantic conventions; all others are ``keystone.*``.
"""

from __future__ import annotations

from dataclasses import dataclass

METHOD = "http.request.method"
ROUTE = "http.route"
STATUS = "http.response.status_code"
AUTH_METHOD = "keystone.auth.method"
PHASE = "keystone.phase"
OPERATION = "keystone.operation"
CACHE_REGION = "keystone.cache.region"
CACHE_LAYER = "keystone.cache.layer"
CACHE_OPERATION = "keystone.cache.operation"
CACHE_RESULT = "keystone.cache.result"
CACHE_FUNCTION = "keystone.cache.function"
SQL_CALL = "keystone.sql.call"
TABLE_CLASS = "keystone.sql.table_class"
ERROR_TYPE = "error.type"
REVOCATION_KIND = "keystone.revocation.kind"
HASH_ALGORITHM = "keystone.password_hash.algorithm"
HASH_COST = "keystone.password_hash.cost"
HASH_ACTION = "keystone.password_hash.action"
DIRECTION = "network.io.direction"
SEAM = "keylag.seam"
KEY_REPOSITORY = "keystone.fernet.repository"
CACHE_BACKEND = "keystone.cache.backend"
CACHE_SERVERS = "keystone.cache.servers"
SECTION = "keystone.configuration.section"
CALLER = "keystone.caller"
TOKEN_PROVIDER = "keystone.token.provider"  # noqa: S105 - an attribute's name
CPU_MODE = "cpu.mode"
GENERATION = "cpython.gc.generation"

#: OpenTelemetry's attribute of the overflow series.
OVERFLOW = "otel.metric.overflow"

REQUEST_ATTRIBUTES = (METHOD, ROUTE, STATUS, AUTH_METHOD)


@dataclass(frozen=True)
class Instrument:
    """The name, UCUM unit, description and attributes of a metric.

    ``limit`` is the cardinality limit of a counter in one process.  It is above the
    number of combinations of its attributes, which are closed sets.
    """

    name: str
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    limit: int = 64


REQUEST_DURATION = Instrument(
    "http.server.request.duration",
    "s",
    "Wall time of a request at the outermost WSGI layer",
    REQUEST_ATTRIBUTES,
)
#: Seconds; the bounds of Keystone-in-Rust (ADR 31), so that one dashboard serves both.
DURATION_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0),
)

PHASE_TIME = Instrument(
    "keystone.request.phase.time",
    "s",
    "Self time of requests by phase and operation; its sum is their wall time",
    (*REQUEST_ATTRIBUTES, PHASE, OPERATION),
)

#: By the name of the count in ``keylag_otel.request_timer.COUNTS``.
REQUEST_COUNTERS = {
    "sql_statements": Instrument(
        "keystone.request.sql.statements",
        "{statement}",
        "SQL statements that requests sent",
        REQUEST_ATTRIBUTES,
    ),
    "cache_calls": Instrument(
        "keystone.request.cache.calls",
        "{call}",
        "Calls that requests made to the cache backend, each a round trip",
        REQUEST_ATTRIBUTES,
    ),
}

#: Histograms of single calls within requests, by the name in ``model.CALL_KINDS``.
#: The bounds of their buckets are ``model.CALL_BOUNDS``.
CALL_DURATIONS = {
    "cache": Instrument(
        "keystone.cache.call.duration",
        "s",
        "Time of a round trip to the cache backend: one slow mode is distance, a tail "
        "is a server that hangs",
        (CACHE_OPERATION,),
    ),
    "sql": Instrument(
        "keystone.sql.call.duration",
        "s",
        "Time of a call of the database driver; a write is INSERT, UPDATE or DELETE, a "
        "read any other statement, both without later fetches",
        (SQL_CALL,),
    ),
}

#: Counters without the attributes of requests, by the name that `counter_id` takes.
COUNTERS = {
    "cache_calls": Instrument(
        "keystone.cache.calls",
        "{call}",
        "Look-ups and changes in a layer of the cache; the region "
        "'invalidation region' holds the other regions' ids",
        (CACHE_REGION, CACHE_LAYER, CACHE_OPERATION, CACHE_RESULT),
        limit=512,
    ),
    "memoized_calls": Instrument(
        "keystone.cache.memoized.calls",
        "{call}",
        "Calls of memoized functions; a miss ran the function",
        (CACHE_REGION, CACHE_FUNCTION, CACHE_RESULT),
        limit=512,
    ),
    "cache_bytes": Instrument(
        "keystone.cache.io",
        "By",
        "Serialised values received from and sent to the cache server",
        (CACHE_REGION, DIRECTION),
        limit=128,
    ),
    "cache_invalidations": Instrument(
        "keystone.cache.invalidations",
        "{invalidation}",
        "Invalidations of a whole region",
        (CACHE_REGION,),
    ),
    "cache_errors": Instrument(
        "keystone.cache.errors",
        "{error}",
        "Calls to the cache backend that raised an exception",
        (CACHE_REGION, ERROR_TYPE),
        limit=256,
    ),
    "sql_statements": Instrument(
        "keystone.sql.statements",
        "{statement}",
        "SQL statements by the part of Keystone whose tables they touch",
        (TABLE_CLASS,),
    ),
    "sql_rows": Instrument(
        "keystone.sql.rows",
        "{row}",
        "Rows that SQL statements returned or changed",
        (TABLE_CLASS,),
    ),
    "sql_errors": Instrument(
        "keystone.sql.errors",
        "{error}",
        "SQL statements and commits that failed; deadlock, lock_timeout, disconnect or "
        "other",
        (TABLE_CLASS, ERROR_TYPE),
        limit=128,
    ),
    "sql_retries": Instrument(
        "keystone.sql.retries",
        "{retry}",
        "Database operations that oslo.db ran again",
    ),
    "sql_connects": Instrument(
        "keystone.sql.connects",
        "{connection}",
        "Connections opened to the database",
    ),
    "sql_pool_checkouts": Instrument(
        "keystone.sql.pool.checkouts",
        "{checkout}",
        "Connections taken from the pool",
    ),
    "sql_pool_waits": Instrument(
        "keystone.sql.pool.waits",
        "{wait}",
        "Connections taken from the pool when none was free and none could be added",
    ),
    "revocation_events_fetched": Instrument(
        "keystone.revocation.events.fetched",
        "{event}",
        "Revocation events fetched to check tokens, by what they revoke",
        (REVOCATION_KIND,),
    ),
    "revocation_events_written": Instrument(
        "keystone.revocation.events.written",
        "{event}",
        "Revocation events written, by what they revoke",
        (REVOCATION_KIND,),
    ),
    "auth_failures": Instrument(
        "keystone.auth.failures",
        "{failure}",
        "Authentications refused, by method and reason",
        (AUTH_METHOD, ERROR_TYPE),
        limit=512,
    ),
    "validations": Instrument(
        "keystone.token.validations",
        "{validation}",
        "Token validations, by the OpenStack service that the caller's user is named "
        "after",
        (CALLER,),
    ),
    "password_hashes": Instrument(
        "keystone.password_hash.operations",
        "{operation}",
        "Passwords and secrets checked or hashed; the cost is rounds, or log2 of n",
        (HASH_ALGORITHM, HASH_COST, HASH_ACTION),
        limit=128,
    ),
    "faults": Instrument(
        "keystone.keylag.faults",
        "{fault}",
        "Exceptions in Keylag's own code; Keystone was not affected",
        (SEAM,),
        limit=256,
    ),
}

#: Read at each export; by the keys of ``gauges.CALLBACKS``.
GAUGES = {
    "fernet_keys": Instrument(
        "keystone.fernet.keys",
        "{key}",
        "Keys in a Fernet repository; decrypting a token may try all of them",
        (KEY_REPOSITORY,),
    ),
    "fernet_primary_age": Instrument(
        "keystone.fernet.primary_key.age",
        "s",
        "Time since the primary key of a Fernet repository was written",
        (KEY_REPOSITORY,),
    ),
    "password_hash_cost": Instrument(
        "keystone.password_hash.cost",
        "{cost}",
        "Configured cost of new passwords: rounds, or log2 of n for scrypt",
        (HASH_ALGORITHM,),
    ),
    "cache_expiration_time": Instrument(
        "keystone.cache.expiration_time",
        "s",
        "Configured time that values of a section of Keystone's options stay in the "
        "cache",
        (SECTION,),
    ),
    "configuration_info": Instrument(
        "keystone.configuration.info",
        "{info}",
        "Always 1; its attributes are the options that affect the breakdown",
        (CACHE_BACKEND, CACHE_SERVERS, TOKEN_PROVIDER, HASH_ALGORITHM),
    ),
}

#: Read at each export; by the keys of ``process.CALLBACKS``.
PROCESS = {
    "cpu_time": Instrument(
        "process.cpu.time",
        "s",
        "CPU time of the worker process, in user and system mode",
        (CPU_MODE,),
    ),
    "cpu_wait": Instrument(
        "process.cpu.wait",
        "s",
        "Time that the worker's threads were ready to run and waited for a CPU; absent "
        "where the kernel does not count it",
    ),
    "gc_collections": Instrument(
        "cpython.gc.collections",
        "{collection}",
        "Garbage collections by generation; the oldest visits all objects",
        (GENERATION,),
    ),
    "gc_time": Instrument(
        "keystone.gc.time",
        "s",
        "Time of garbage collections; it is part of the phases that they interrupt",
        (GENERATION,),
    ),
}

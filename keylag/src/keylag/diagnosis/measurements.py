"""What a diagnosis asks of Prometheus: names, queries, and who sends the metrics.

Queries are written on raw counters, with these placeholders: `TOKENS` selects token
calls, `ALL` selects nothing more, and `WINDOW` is the time that is diagnosed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Source:
    """Who sends metrics: a series that exists while it works, and what installs it."""

    witness: str
    install: str


KEYSTONE: Final = "keylag-otel"
CALLS: Final = "call histograms"
HOST: Final = "host"
MEMCACHED: Final = "memcached"
MYSQL: Final = "mysql"
SLOW_LOG: Final = "slow log"
REVOCATIONS: Final = "revocations"
UWSGI: Final = "uwsgi"
PROXYSQL: Final = "proxysql"
PROBE: Final = "probe"
SERVICES: Final = "services"

SOURCES: Final[Mapping[str, Source]] = {
    KEYSTONE: Source("keystone_configuration_info{ALL}", "keylag-otel inside Keystone"),
    CALLS: Source(
        "keystone_sql_call_duration_seconds_count{ALL}",
        "a keylag-otel with histograms of single calls",
    ),
    HOST: Source(
        "node_cpu_seconds_total{ALL}",
        "`keylag-exporter host` or node_exporter on Keystone's hosts",
    ),
    MEMCACHED: Source(
        "memcached_up{ALL}", "`keylag-exporter memcached` or memcached_exporter"
    ),
    MYSQL: Source("mysql_up{ALL}", "`keylag-exporter mysql` or mysqld_exporter"),
    SLOW_LOG: Source(
        "keylag_slow_log_classes{ALL}", "`keylag-exporter slow-log` at the database"
    ),
    REVOCATIONS: Source(
        "keylag_revocations_count_limit{ALL}", "`keylag-exporter revocations`"
    ),
    UWSGI: Source("keylag_uwsgi_workers{ALL}", "`keylag-exporter uwsgi`"),
    PROXYSQL: Source(
        "keylag_proxysql_digests{ALL}",
        "`keylag-exporter proxysql`, if you use ProxySQL",
    ),
    PROBE: Source("probe_success{ALL}", "`keylag-exporter probe` on a client's host"),
    SERVICES: Source(
        "keystone_auth_token_configuration_info{ALL}",
        "keylag-otel inside the services that use auth_token",
    ),
}
"""All sources by name."""


@dataclass(frozen=True)
class Measurement:
    """One question to Prometheus, and the unit of its answers."""

    source: str
    promql: str
    unit: str
    text: str
    """What it is, in a few words."""


_KIND: Final = "http_request_method, keystone_auth_method, http_response_status_code"


def _rate(metric: str, by: str = "", matchers: str = "ALL") -> str:
    """Return the sum of a counter's rates, by labels."""
    grouped = f"sum by ({by})" if by else "sum"
    return f"{grouped} (rate({metric}{{{matchers}}}[WINDOW]))"


def _token(metric: str, by: str = _KIND) -> str:
    return _rate(metric, by, "TOKENS")


def _average(metric: str, function: str = "sum") -> str:
    return f"{function} (avg_over_time({metric}{{ALL}}[WINDOW]))"


_OTHER_ROUTES: Final = 'http_route!="/v3/auth/tokens", ALL'
_PROBED_ROUTE: Final = 'http_route="/v3", http_request_method="GET", ALL'
_HTTP: Final = "http_server_request_duration_seconds"
_PHASE: Final = "keystone_request_phase_time_seconds_total"

MEASUREMENTS: Final[Mapping[str, Measurement]] = {
    # Token calls
    "calls": Measurement(KEYSTONE, _token(f"{_HTTP}_count"), "calls/s", "token calls"),
    "call_buckets": Measurement(
        KEYSTONE, _token(f"{_HTTP}_bucket", f"{_KIND}, le"), "calls/s", "durations"
    ),
    "cells": Measurement(
        KEYSTONE,
        _token(_PHASE, f"{_KIND}, keystone_phase, keystone_operation"),
        "s/s",
        "time by phase and operation",
    ),
    "statements": Measurement(
        KEYSTONE,
        _token("keystone_request_sql_statements_total"),
        "statements/s",
        "SQL statements of token calls",
    ),
    "round_trips": Measurement(
        KEYSTONE,
        _token("keystone_request_cache_calls_total"),
        "calls/s",
        "calls to the cache server",
    ),
    "other_seconds": Measurement(
        KEYSTONE,
        _rate(f"{_HTTP}_sum", "", _OTHER_ROUTES),
        "s/s",
        "time of all other routes",
    ),
    "requests": Measurement(
        KEYSTONE, _rate(f"{_HTTP}_count"), "requests/s", "requests of all routes"
    ),
    "validations": Measurement(
        KEYSTONE,
        _rate("keystone_token_validations_total", "keystone_caller"),
        "validations/s",
        "validations by caller",
    ),
    # Workers
    "workers": Measurement(
        KEYSTONE,
        "count(count by (job, instance) (keystone_configuration_info{ALL}))",
        "workers",
        "workers that report",
    ),
    "cpu_seconds": Measurement(
        KEYSTONE,
        _rate("process_cpu_time_seconds_total"),
        "s/s",
        "CPU time of all workers",
    ),
    "cpu_wait_seconds": Measurement(
        CALLS,
        _rate("process_cpu_wait_seconds_total"),
        "s/s",
        "time in which workers waited for a CPU",
    ),
    # Cache
    "cache_backends": Measurement(
        KEYSTONE,
        "count by (keystone_cache_backend) (keystone_configuration_info{ALL})",
        "workers",
        "workers by cache backend",
    ),
    "cache_expiration": Measurement(
        KEYSTONE,
        "min by (keystone_configuration_section)"
        " (keystone_cache_expiration_time_seconds{ALL})",
        "s",
        "seconds that cached values live, by section of Keystone's options",
    ),
    "cache_lists": Measurement(
        KEYSTONE,
        "count by (cluster, region, keystone_cache_servers)"
        " (keystone_configuration_info{ALL})",
        "workers",
        "workers by list of cache servers",
    ),
    "cache_call_buckets": Measurement(
        CALLS,
        _rate("keystone_cache_call_duration_seconds_bucket", "le"),
        "calls/s",
        "durations of calls to the cache server",
    ),
    "cache_call_seconds": Measurement(
        CALLS,
        _rate("keystone_cache_call_duration_seconds_sum"),
        "s/s",
        "time in calls to the cache server",
    ),
    "cache_errors": Measurement(
        KEYSTONE,
        _rate("keystone_cache_errors_total", "error_type"),
        "errors/s",
        "failed calls to the cache server",
    ),
    "memoized": Measurement(
        KEYSTONE,
        _rate(
            "keystone_cache_memoized_calls_total",
            "keystone_cache_region, keystone_cache_result",
        ),
        "look-ups/s",
        "look-ups of memoized functions",
    ),
    "cache_gets": Measurement(
        KEYSTONE,
        _rate(
            "keystone_cache_calls_total",
            "keystone_cache_result",
            'keystone_cache_operation="get", keystone_cache_layer="backend", ALL',
        ),
        "calls/s",
        "look-ups in the cache server",
    ),
    "cache_sets": Measurement(
        KEYSTONE,
        _rate(
            "keystone_cache_calls_total",
            "keystone_cache_region",
            'keystone_cache_operation="set", ALL',
        ),
        "calls/s",
        "values stored in the cache",
    ),
    "invalidations": Measurement(
        KEYSTONE,
        _rate("keystone_cache_invalidations_total", "keystone_cache_region"),
        "invalidations/s",
        "invalidations of a whole region",
    ),
    "memcached_up": Measurement(
        MEMCACHED,
        "min(avg_over_time(memcached_up{ALL}[WINDOW]))",
        "",
        "memcached answers",
    ),
    "memcached_connections": Measurement(
        MEMCACHED,
        "max(max_over_time(memcached_current_connections{ALL}[WINDOW])"
        " / memcached_max_connections{ALL})",
        "of the limit",
        "connections of memcached",
    ),
    "memcached_full": Measurement(
        MEMCACHED,
        "max(avg_over_time(keylag_memcached_full{ALL}[WINDOW]))",
        "of the time",
        "memcached refuses connections, as it has too many",
    ),
    "memcached_refusals": Measurement(
        MEMCACHED,
        _rate("memcached_connections_listener_disabled_total"),
        "times/s",
        "times that memcached stopped accepting connections",
    ),
    "memcached_evictions": Measurement(
        MEMCACHED, _rate("memcached_items_evicted_total"), "items/s", "evictions"
    ),
    "memcached_bytes": Measurement(
        MEMCACHED,
        "max(memcached_current_bytes{ALL} / memcached_limit_bytes{ALL})",
        "of the limit",
        "memory of memcached",
    ),
    "memcached_flushes": Measurement(
        MEMCACHED,
        _rate("memcached_commands_total", matchers='command="flush", ALL'),
        "flushes/s",
        "flushes of memcached by any client",
    ),
    "memcached_too_large": Measurement(
        MEMCACHED,
        _rate("memcached_item_too_large_total"),
        "items/s",
        "items that memcached refused for their size",
    ),
    "memcached_uptime": Measurement(
        MEMCACHED, "min(memcached_uptime_seconds{ALL})", "s", "age of memcached"
    ),
    # Database
    "sql_call_buckets": Measurement(
        CALLS,
        _rate("keystone_sql_call_duration_seconds_bucket", "keystone_sql_call, le"),
        "calls/s",
        "durations of driver calls",
    ),
    "sql_call_seconds": Measurement(
        CALLS,
        _rate("keystone_sql_call_duration_seconds_sum", "keystone_sql_call"),
        "s/s",
        "time in driver calls",
    ),
    "refused_commits": Measurement(
        KEYSTONE,
        _rate(
            "keystone_sql_errors_total",
            matchers='keystone_sql_table_class="commit", error_type="deadlock", ALL',
        ),
        "commits/s",
        "commits that a Galera cluster refused",
    ),
    "sql_pool_waits": Measurement(
        KEYSTONE,
        _rate("keystone_sql_pool_waits_total"),
        "waits/s",
        "waits for a pooled connection",
    ),
    "sql_checkouts": Measurement(
        KEYSTONE,
        _rate("keystone_sql_pool_checkouts_total"),
        "check-outs/s",
        "connections taken from the pool",
    ),
    "sql_connects": Measurement(
        KEYSTONE,
        _rate("keystone_sql_connects_total"),
        "connects/s",
        "new connections to the database",
    ),
    "log_seconds": Measurement(
        SLOW_LOG,
        _rate("keylag_slow_log_query_time_seconds_total", "id"),
        "s/s",
        "time in the database by statement",
    ),
    "log_calls": Measurement(
        SLOW_LOG,
        _rate("keylag_slow_log_calls_total", "id"),
        "statements/s",
        "statements in the slow log",
    ),
    "log_lock_seconds": Measurement(
        SLOW_LOG,
        _rate("keylag_slow_log_lock_time_seconds_total", "id"),
        "s/s",
        "time waiting for locks by statement",
    ),
    "log_rows_examined": Measurement(
        SLOW_LOG,
        _rate("keylag_slow_log_rows_examined_total", "id"),
        "rows/s",
        "rows that the database read",
    ),
    "log_rows_sent": Measurement(
        SLOW_LOG,
        _rate("keylag_slow_log_rows_sent_total", "id"),
        "rows/s",
        "rows that the database sent",
    ),
    "log_statements": Measurement(
        SLOW_LOG,
        "max by (id, statement) (keylag_slow_log_class_info{ALL})",
        "",
        "statements by id",
    ),
    "row_lock_waits": Measurement(
        MYSQL,
        _average("mysql_global_status_innodb_row_lock_current_waits"),
        "statements",
        "statements that wait for a row lock",
    ),
    "row_lock_seconds": Measurement(
        MYSQL,
        "sum(rate(mysql_global_status_innodb_row_lock_time{ALL}[WINDOW])) / 1000",
        "s/s",
        "time waiting for row locks",
    ),
    "database_disk_reads": Measurement(
        MYSQL,
        "sum(rate(mysql_global_status_innodb_buffer_pool_reads{ALL}[WINDOW]))",
        "reads/s",
        "reads that the database's buffer pool could not answer",
    ),
    "threads_running": Measurement(
        MYSQL,
        _average("mysql_global_status_threads_running", "max"),
        "threads",
        "busy threads of the database",
    ),
    "wsrep_cluster_size": Measurement(
        MYSQL,
        "min(mysql_global_status_wsrep_cluster_size{ALL})",
        "nodes",
        "nodes of the Galera cluster",
    ),
    "wsrep_sync_wait": Measurement(
        MYSQL,
        "max(mysql_global_variables_wsrep_sync_wait{ALL})",
        "",
        "wsrep_sync_wait",
    ),
    "wsrep_causal_reads": Measurement(
        MYSQL,
        _rate("mysql_global_status_wsrep_causal_reads"),
        "statements/s",
        "statements that waited for the Galera cluster",
    ),
    "wsrep_paused": Measurement(
        MYSQL,
        "max(rate(mysql_global_status_wsrep_flow_control_paused_ns{ALL}[WINDOW]))"
        " / 1e9",
        "of the time",
        "time in which flow control paused replication",
    ),
    "proxysql_timeouts": Measurement(
        PROXYSQL,
        _rate("keylag_proxysql_pool_timeouts_total"),
        "statements/s",
        "statements that timed out in ProxySQL",
    ),
    "proxysql_seconds": Measurement(
        PROXYSQL,
        _rate("keylag_proxysql_time_seconds_total"),
        "s/s",
        "time of statements in ProxySQL",
    ),
    "proxysql_waits": Measurement(
        PROXYSQL,
        _rate("keylag_proxysql_pool_requests_total", matchers='ALL,outcome="failure"'),
        "requests/s",
        "requests for a backend connection that found none",
    ),
    # Revocation
    "events_fetched": Measurement(
        KEYSTONE,
        _rate("keystone_revocation_events_fetched_total"),
        "events/s",
        "revocation events fetched to check tokens",
    ),
    "events_written": Measurement(
        KEYSTONE,
        _rate("keystone_revocation_events_written_total"),
        "events/s",
        "revocation events written",
    ),
    "live_events": Measurement(
        REVOCATIONS,
        "sum(max by (cluster, region, kind) (keylag_revocations_live_events{ALL}))",
        "events",
        "live revocation events",
    ),
    "index_present": Measurement(
        REVOCATIONS,
        "min by (columns) (keylag_revocations_index_present{ALL})",
        "",
        "indexes of the revocation table",
    ),
    # Clients
    "failures": Measurement(
        KEYSTONE,
        _rate("keystone_auth_failures_total", "keystone_auth_method, error_type"),
        "failures/s",
        "refused authentications",
    ),
    # Hashes and keys
    "hashes": Measurement(
        KEYSTONE,
        _rate(
            "keystone_password_hash_operations_total",
            "keystone_password_hash_algorithm, keystone_password_hash_cost",
        ),
        "hashes/s",
        "password hashes by cost",
    ),
    "fernet_keys": Measurement(
        KEYSTONE,
        'max(keystone_fernet_keys{keystone_fernet_repository="tokens", ALL})',
        "keys",
        "keys in the Fernet repository",
    ),
    # Server
    "queue": Measurement(
        UWSGI,
        "sum(avg_over_time(keylag_uwsgi_socket_queue{ALL}[WINDOW]))",
        "connections",
        "connections that wait for a worker",
    ),
    "server_workers": Measurement(
        UWSGI,
        "sum(avg_over_time(keylag_uwsgi_workers{ALL}[WINDOW]))",
        "workers",
        "workers of uWSGI",
    ),
    # Host
    "host_cpus": Measurement(
        HOST,
        'count(count by (instance, cpu) (node_cpu_seconds_total{mode="idle", ALL}))',
        "CPUs",
        "CPUs of the hosts",
    ),
    "host_cpu_seconds": Measurement(
        HOST,
        _rate("node_cpu_seconds_total", "mode"),
        "s/s",
        "CPU time of the hosts by mode",
    ),
    "host_io_pressure": Measurement(
        HOST,
        "max(rate(node_pressure_io_waiting_seconds_total{ALL}[WINDOW]))",
        "of the time",
        "time in which a task waited for storage",
    ),
    "throttled_seconds": Measurement(
        HOST,
        _rate("container_cpu_cfs_throttled_seconds_total"),
        "s/s",
        "time in which a CPU limit stopped Keystone",
    ),
    # Probe
    "probe_seconds": Measurement(
        PROBE,
        _rate("keylag_probe_phase_duration_seconds_sum", "phase"),
        "s/s",
        "time of a probe by hop",
    ),
    "probe_buckets": Measurement(
        PROBE,
        _rate("keylag_probe_phase_duration_seconds_bucket", "phase, le"),
        "probes/s",
        "durations of a probe's hops",
    ),
    "probed_seconds": Measurement(
        KEYSTONE,
        _rate(f"{_HTTP}_sum", "", _PROBED_ROUTE),
        "s/s",
        "time in Keystone of the route that is probed",
    ),
    "probed_calls": Measurement(
        KEYSTONE,
        _rate(f"{_HTTP}_count", "", _PROBED_ROUTE),
        "calls/s",
        "calls of the route that is probed",
    ),
    "probes": Measurement(
        PROBE,
        "max(sum by (phase)"
        " (rate(keylag_probe_phase_duration_seconds_count{ALL}[WINDOW])))",
        "probes/s",
        "probes",
    ),
    # Services
    "service_validations": Measurement(
        SERVICES,
        _rate(
            "keystone_auth_token_validations_total", "keystone_auth_token_validation"
        ),
        "validations/s",
        "validations of auth_token, by cache hit and miss",
    ),
    "service_requests": Measurement(
        SERVICES,
        _rate(
            "keystone_auth_token_request_duration_seconds_count", "http_request_method"
        ),
        "requests/s",
        "requests of services by method",
    ),
    "service_seconds": Measurement(
        SERVICES,
        _rate(
            "keystone_auth_token_request_duration_seconds_sum", "http_request_method"
        ),
        "s/s",
        "time of services' requests by method",
    ),
    "service_cells": Measurement(
        SERVICES,
        _rate(
            "keystone_auth_token_phase_time_seconds_total",
            "http_request_method, keystone_phase",
        ),
        "s/s",
        "time of services by method and phase",
    ),
    "service_cache_buckets": Measurement(
        SERVICES,
        _rate("keystone_auth_token_cache_duration_seconds_bucket", "le"),
        "calls/s",
        "durations of calls to the token cache",
    ),
    "service_cache_seconds": Measurement(
        SERVICES,
        _rate("keystone_auth_token_cache_duration_seconds_sum"),
        "s/s",
        "time in the token cache",
    ),
    "service_cache_errors": Measurement(
        SERVICES,
        _rate("keystone_auth_token_cache_errors_total"),
        "errors/s",
        "failed calls to the token cache",
    ),
    "service_replayed": Measurement(
        SERVICES,
        _rate(
            "keystone_auth_token_cache_replayed_misses_total",
            "keystone_auth_token_times",
        ),
        "misses/s",
        "misses if token_cache_time were longer",
    ),
    "service_cache_time": Measurement(
        SERVICES,
        "min(keystone_auth_token_cache_time_seconds{ALL})",
        "s",
        "the shortest token_cache_time of a service",
    ),
}
"""All measurements by name."""

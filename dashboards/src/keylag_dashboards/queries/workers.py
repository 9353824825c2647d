"""Queries of *Workers*: load, queueing, password hashing."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.promql import or_zero, with_spaces

SHOWN_WORKERS: Final = 10
"""Workers in the table, the busiest first."""
_HASHED: Final = """sum(avg_over_time(
    keylag:phase_seconds:rate{KEYSTONE, keystone_phase="password_hash"}[STEP]))"""
_HASHES: Final = "rate(keystone_password_hash_operations_total{KEYSTONE}[RATE])"
_REPORTING: Final = "avg_over_time(keylag:worker_calls:rate{WORKERS}[STEP])"


def _worker(series: str) -> str:
    """Return the rate of a series of each worker; an average would read all of it."""
    return f"sum by (instance) (keylag:worker_{series}:rate{{WORKERS}})"


def _spread(name: str, series: str) -> dict[str, str]:
    """Return the largest, the median and the smallest value of all workers.

    Without a choice of workers they are those recorded for each controller.
    """

    def of(spread: str) -> str:
        return f"""keylag:worker_{series}_spread:RECORDED{{
            ALL_WORKERS, spread="{spread}"}}
            or keylag:worker_{series}:RECORDED{{CHOSEN_WORKERS}}"""

    return {
        f"{name}_max": f"clamp_max(max({of('highest')}), 1)",
        f"{name}_median": f"clamp_max(quantile(0.5, {of('median')}), 1)",
        f"{name}_min": f"clamp_max(min({of('lowest')}), 1)",
    }


def _busiest(query: str) -> str:
    return f"""{query} and on (instance)
        topk({SHOWN_WORKERS}, {_worker("busy_seconds")})"""


def _route(series: str) -> str:
    """Return the mean rate of a series of each route over the time shown."""
    return f"""sum by (http_request_method, http_route) (
        avg_over_time(keylag:job_route_{series}:rate{{ALL_HOSTS}}[SHOWN])
        or avg_over_time(keylag:route_{series}:rate{{CHOSEN_HOSTS}}[SHOWN]))"""


_ROUTES: Final = f"topk(10, {_route('seconds')})"
_LISTED: Final = f"and on (http_request_method, http_route) {_ROUTES}"

QUERIES: Final[Mapping[str, str]] = {
    "phases": with_spaces(
        """sum by (keystone_phase) (
        avg_over_time(keylag:phase_seconds:rate{KEYSTONE}[STEP]))""",
        "keystone_phase",
    ),
    **_spread("busy", "busy_seconds"),
    **_spread("cpu", "cpu_seconds"),
    **_spread("gc", "gc_seconds"),
    "worker_busy": _busiest(_worker("busy_seconds")),
    "worker_cpu": _busiest(_worker("cpu_seconds")),
    "worker_gc": _busiest(_worker("gc_seconds")),
    "worker_calls": _busiest(_worker("calls")),
    "worker_mean": _busiest(f"({_worker('busy_seconds')} / ({_worker('calls')} > 0))"),
    "route_seconds": _ROUTES,
    "route_calls": f"{_route('calls')} {_LISTED}",
    "route_mean": f"{_ROUTES} / ({_route('calls')} > 0)",
    "collections": """sum by (cpython_gc_generation) (
        avg_over_time(keylag:gc_collections:rate{KEYSTONE}[STEP]))""",
    "states": "sum by (state) (keylag_uwsgi_workers{EXPORTER})",
    "queue": "max by (socket) (keylag_uwsgi_socket_queue{EXPORTER})",
    "queue_limit": """max(keylag_uwsgi_socket_queue_limit{EXPORTER}) and on ()
        max(keylag_uwsgi_socket_queue{EXPORTER})
        > 0.2 * max(keylag_uwsgi_socket_queue_limit{EXPORTER})""",
    "queue_full": "sum(rate(keylag_uwsgi_listen_queue_errors_total{EXPORTER}[RATE]))",
    "memory_max": "max(keylag_uwsgi_worker_resident_bytes{EXPORTER})",
    "memory_median": """quantile(0.5,
        keylag_uwsgi_worker_resident_bytes{EXPORTER})""",
    "starts": """sum by (instance) (
        rate(keylag_uwsgi_worker_starts_total{EXPORTER}[RATE]))""",
    "killed": "sum(rate(keylag_uwsgi_worker_harakiri_total{EXPORTER}[RATE]))",
    "exceptions": "sum(rate(keylag_uwsgi_worker_exceptions_total{EXPORTER}[RATE]))",
    "outside_app": """clamp_min(
        sum(avg_over_time(keylag:uwsgi_busy_seconds:rate{EXPORTER}[STEP]))
        - sum(avg_over_time(keylag:worker_busy_seconds:rate{JOBS}[STEP])), 0)""",
    "hash_rate": or_zero(
        f"""sum by (keystone_password_hash_algorithm,
        keystone_password_hash_cost, keystone_password_hash_action) ({_HASHES})""",
        "keystone_password_hash_action",
        "no hashes",
        _REPORTING,
    ),
    "hash_time": f"{_HASHED} / (sum({_HASHES}) > 0)",
    "hash_share": f"""{_HASHED}
        / count(count by (job, instance) (keystone_configuration_info{{KEYSTONE}}))""",
    "hash_cost": """max by (keystone_password_hash_algorithm) (
        keystone_password_hash_cost{KEYSTONE})""",
    "keys": "max by (keystone_fernet_repository) (keystone_fernet_keys{KEYSTONE})",
    "oldest_key": """max by (keystone_fernet_repository) (
        keystone_fernet_primary_key_age_seconds{KEYSTONE})""",
    "key_age": """min by (keystone_fernet_repository) (
        keystone_fernet_primary_key_age_seconds{KEYSTONE})""",
    "configuration": """count by (keystone_cache_backend, keystone_token_provider,
        keystone_password_hash_algorithm) (keystone_configuration_info{KEYSTONE})""",
    "faults": or_zero(
        """sum by (keylag_seam) (
        rate(keystone_keylag_faults_total{KEYSTONE}[RATE]))""",
        "keylag_seam",
        "no faults",
        _REPORTING,
    ),
    "source_success": """min by (exporter, source) (label_replace(
        keylag_exporter_source_success{EXPORTER},
        "exporter", "$1", "instance", "(.+)"))""",
    "source_seconds": """max by (source) (
        keylag_exporter_source_duration_seconds{EXPORTER})""",
    "source_failures": """sum by (source, reason) (
        rate(keylag_exporter_source_failures_total{EXPORTER}[RATE])) > 0""",
}

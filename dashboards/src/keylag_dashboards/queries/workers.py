"""Queries of *Workers and host*: load, queueing, password hashing."""

from collections.abc import Mapping
from typing import Final

_HASH_TIME: Final = """sum(rate(keystone_request_phase_time_seconds_total{
    KEYSTONE, keystone_phase="password_hash"}[RATE]))"""

QUERIES: Final[Mapping[str, str]] = {
    "phases": """sum by (keystone_phase) (
        rate(keystone_request_phase_time_seconds_total{KEYSTONE}[RATE]))""",
    "busy": """sum by (instance) (
        rate(http_server_request_duration_seconds_sum{KEYSTONE}[RATE]))""",
    "routes": """topk(10, sum by (http_request_method, http_route) (
        rate(http_server_request_duration_seconds_sum{KEYSTONE}[RATE])))""",
    "cpu": """sum by (instance) (
        rate(process_cpu_time_seconds_total{KEYSTONE}[RATE]))""",
    "gc_share": """sum by (instance) (
        rate(keystone_gc_time_seconds_total{KEYSTONE}[RATE]))""",
    "collections": """sum by (cpython_gc_generation) (
        rate(cpython_gc_collections_total{KEYSTONE}[RATE]))""",
    "states": "sum by (state) (keylag_uwsgi_workers{EXPORTER})",
    "queue": "max by (socket) (keylag_uwsgi_socket_queue{EXPORTER})",
    "queue_limit": "max by (socket) (keylag_uwsgi_socket_queue_limit{EXPORTER})",
    "queue_full": "sum(rate(keylag_uwsgi_listen_queue_errors_total{EXPORTER}[RATE]))",
    "memory": """max by (instance, worker) (
        keylag_uwsgi_worker_resident_bytes{EXPORTER})""",
    "starts": """sum by (instance, worker) (
        rate(keylag_uwsgi_worker_starts_total{EXPORTER}[RATE]))""",
    "killed": "sum(rate(keylag_uwsgi_worker_harakiri_total{EXPORTER}[RATE]))",
    "exceptions": "sum(rate(keylag_uwsgi_worker_exceptions_total{EXPORTER}[RATE]))",
    "outside_app": """sum(rate(keylag_uwsgi_worker_busy_seconds_total{EXPORTER}[RATE]))
        - sum(rate(http_server_request_duration_seconds_sum{KEYSTONE}[RATE]))""",
    "hash_rate": """sum by (keystone_password_hash_algorithm,
        keystone_password_hash_cost, keystone_password_hash_action) (
        rate(keystone_password_hash_operations_total{KEYSTONE}[RATE]))""",
    "hash_time": f"""{_HASH_TIME} / sum(
        rate(keystone_password_hash_operations_total{{KEYSTONE}}[RATE]))""",
    "hash_share": f"""{_HASH_TIME}
        / count(count by (job, instance) (keystone_configuration_info{{KEYSTONE}}))""",
    "hash_cost": """max by (keystone_password_hash_algorithm) (
        keystone_password_hash_cost{KEYSTONE})""",
    "keys": "max by (keystone_fernet_repository) (keystone_fernet_keys{KEYSTONE})",
    "key_age": """min by (keystone_fernet_repository) (
        keystone_fernet_primary_key_age_seconds{KEYSTONE})""",
    "configuration": """count by (keystone_cache_backend, keystone_token_provider,
        keystone_password_hash_algorithm) (keystone_configuration_info{KEYSTONE})""",
    "faults": """sum by (keylag_seam) (
        rate(keystone_keylag_faults_total{KEYSTONE}[RATE]))""",
    "source_success": """min by (instance, source) (
        keylag_exporter_source_success{EXPORTER})""",
    "source_seconds": """max by (source) (
        keylag_exporter_source_duration_seconds{EXPORTER})""",
    "source_failures": """sum by (source, reason) (
        rate(keylag_exporter_source_failures_total{EXPORTER}[RATE]))""",
}

"""Configuration of all dashboards and rules: selectors, objective, colours."""

from collections.abc import Mapping
from typing import Final

TAG: Final = "keylag"
UID_PREFIX: Final = "keylag-"
TIME_RANGE: Final = ("now-1h", "now")
REFRESH: Final = "30s"
DATASOURCE: Final = "${datasource}"
IMPORT_INPUT: Final = "DS_PROMETHEUS"
"""Name of the data source on Grafana's Import page."""
OLDEST_GRAFANA: Final = "10.1.0"
"""Grafana release of the dashboards' schema; newer releases migrate it."""

RUNBOOK_URL: Final = "https://git.example.org/keylag/docs/runbook.md"
"""Placeholder address of docs/runbook.md in alerts.

`python -m keylag_dashboards --runbook-url` sets another address.
"""

ROUTE: Final = "/v3/auth/tokens"
OBJECTIVE_SECONDS: Final = 1
"""A token call is slow above this time, which is a bound of a histogram bucket."""
OBJECTIVE_SHARE: Final = 0.99
"""Share of token calls that must be fast and without a 5xx."""

LEVEL: Final = ("cluster", "region", "job", "host_name", "keylag_run")
"""Labels that recorded series keep: everything but the worker.

`cluster` and `region` come from OTEL_RESOURCE_ATTRIBUTES, or from Prometheus' targets.
"""
RECORDING_WINDOW: Final = "1m"
"""Range of the rates that are recorded: at least two scrapes."""
RECORDING_SECONDS: Final = 30
"""Interval of the recording rules."""
COARSE_SECONDS: Final = 300
"""Interval of the means of recorded series, for panels over many days."""
COARSE_RANGE_SECONDS: Final = 2 * 86400
"""Panels over a longer range read the means."""
FINE, COARSE = "rate", f"rate_avg{COARSE_SECONDS // 60}m"
"""Ends of the names of recorded series."""
MIN_STEP: Final = f"{RECORDING_SECONDS}s"
"""Shortest step of panels on recorded series: one evaluation."""

_CLOUD: Final = 'cluster=~"$cluster", region=~"$region"'
_JOBS: Final = f'{_CLOUD}, job=~"$job"'
_KEYSTONE: Final = f'{_JOBS}, host_name=~"$host"'
_METHOD: Final = 'http_request_method=~"$method"'
_BY_METHOD: Final = f"{_KEYSTONE}, {_METHOD}"
_TOKENS: Final = f'{_KEYSTONE}, http_route="{ROUTE}", {_METHOD}'
_WORKERS: Final = f'{_KEYSTONE}, instance=~"$instance"'
_EXPORTER: Final = f'{_CLOUD}, instance=~"$exporter"'
_PORT: Final = "(:[0-9]+)?"
"""What an instance may have after the name of its host."""
PLACEHOLDERS: Final[Mapping[str, str]] = {
    "CLOUD": _CLOUD,
    "KEYSTONE": _KEYSTONE,
    "WORKERS": _WORKERS,
    "TOKENS": _TOKENS,
    "TOKENS_BY_ANY_METHOD": f'{_KEYSTONE}, http_route="{ROUTE}"',
    # The database's log is that of all controllers.
    "TOKENS_OF_ALL": f'{_JOBS}, http_route="{ROUTE}", {_METHOD}',
    "JOBS": _JOBS,
    "BY_METHOD": _BY_METHOD,
    "ARMS_BY_METHOD": f'{_BY_METHOD}, keylag_run=~"$run"',
    "ARMS": f'{_TOKENS}, keylag_run=~"$run"',
    "ARM_WORKERS": f'{_KEYSTONE}, keylag_run=~"$run"',
    "EXPORTER": _EXPORTER,
    "TOKENS_LOG": f'{_EXPORTER}, route=~"$method {ROUTE}"',
    # No series has the label `all`: its value is empty, which only `.*` matches.
    "ALL_HOSTS": f'{_JOBS}, all=~"$host"',
    "CHOSEN_HOSTS": f'{_KEYSTONE}, all!~"$host"',
    "ALL_WORKERS": f'{_KEYSTONE}, all=~"$instance"',
    "CHOSEN_WORKERS": f'{_WORKERS}, all!~"$instance"',
    "ALL_EXPORTERS": f'{_CLOUD}, all=~"$exporter"',
    "CHOSEN_EXPORTERS": f'{_EXPORTER}, all!~"$exporter"',
    "MEMCACHED": f'{_CLOUD}, instance=~"$memcached"',
    "DATABASE": f'{_CLOUD}, instance=~"$database"',
    # One exporter reads the host, another one its programs.
    "MACHINE": f'{_CLOUD}, instance=~"$machine{_PORT}"',
    "SERVICE": f'{_CLOUD}, job=~"$service"',
    "RATE": "$__rate_interval",
    "STEP": "$__interval",
    "SHOWN": "$__range",
    "RECORDED": "${recorded}",
    "EVERY": "${recorded:text}",
    "LEVEL": ", ".join(LEVEL),
    "JOB": "cluster, region, job",
    "TARGET": "cluster, region, job, instance",
    "ALL_TOKENS": f'http_route="{ROUTE}"',
    "TOKENS_LOGGED": f'route=~".+ {ROUTE}"',
    "IN_TIME": f'http_route="{ROUTE}", le=~"{OBJECTIVE_SECONDS}(\\\\.0)?"',
}
"""Placeholders in queries, and the matchers, labels or ranges that replace them.

`ALL_HOSTS` selects series only if all controllers are chosen, `CHOSEN_HOSTS` only if
some are; so do the others for workers and exporters. A panel that reads both,
joined by `or`, reads few summed series for a whole cloud. The last six are for rules,
which have no variables.
"""

COLORS: Final[Mapping[str, str]] = {
    "sql": "#0072b2",
    "cache": "#009e73",
    "revocation": "#cc79a7",
    "password_hash": "#d55e00",
    "token_crypto": "#e69f00",
    "orm": "#56b4e9",
    "other": "#696f75",
}
"""Colours of the categories in all panels and reports, for colour-blind readers, too.

They are those of Okabe and Ito, with a grey that nobody takes for the pink; tests check
both, and that the reports have the same.
"""
GOOD: Final = COLORS["cache"]
WARNING: Final = COLORS["token_crypto"]
BAD: Final = COLORS["password_hash"]
NEUTRAL: Final = COLORS["other"]

LABEL_HEADINGS: Final[Mapping[str, str]] = {
    "http_response_status_code": "status",
    "keylag_run": "arm",
    "keystone_auth_method": "authentication method",
    "keystone_cache_backend": "cache",
    "keystone_fernet_repository": "keys",
    "keystone_cache_function": "function",
    "keystone_cache_region": "region",
    "keystone_password_hash_algorithm": "password hash",
    "keystone_token_provider": "token",
    "http_request_method": "method",
    "http_route": "route",
    "host_name": "controller",
    "instance": "worker",
    "needed_by": "needed by",
    "groupname": "program",
    "name": "cause",
    "alertname": "alert",
    "table_class": "tables",
    "keystone_auth_token_security_strategy": "protection",
    "keystone_auth_token_cache": "token cache",
}
"""Table headings of labels, where the label is not the heading."""

METRIC_SENDERS: Final[Mapping[str, str]] = {
    "keylag_slow_log_": "keylag-exporter slow-log, beside the database",
    "keylag_proxysql_": "keylag-exporter proxysql",
    "keylag_revocations_": "keylag-exporter revocations, beside the database",
    "keylag_uwsgi_": "keylag-exporter uwsgi, beside Keystone",
    "keylag_exporter_": "keylag-exporter",
    "keylag_diagnosis_": "keylag diagnose --listen, beside Prometheus",
    "node_": "keylag-exporter host or node_exporter, on the host",
    "container_": "keylag-exporter host or cAdvisor, on the host",
    "namedprocess_": "keylag-exporter processes or process-exporter, on the host",
    "mysql_": "keylag-exporter mysql or mysqld_exporter, beside the database",
    "memcached_": "keylag-exporter memcached or the official memcached_exporter",
    "keylag:logged_": (
        "keylag-exporter slow-log, beside the database, by the recording rules"
    ),
    "keylag:uwsgi_": "keylag-exporter uwsgi, beside Keystone, by the recording rules",
    "keylag:keystone_auth_token_": (
        "keylag-otel, inside the service, by the recording rules"
    ),
    "keylag:": "keylag-otel, inside Keystone, by the recording rules",
    "ALERTS": "the alerts of dashboards/generated/rules",
    "up": "Prometheus",
    "keystone_auth_token_": "keylag-otel, inside the service",
    "keystone_": "keylag-otel, inside Keystone",
    "http_server_": "keylag-otel, inside Keystone",
    "process_cpu_": "keylag-otel, inside Keystone",
    "cpython_gc_": "keylag-otel, inside Keystone",
}
"""Prefix of metric names, and their sender, shown in panels without data.

The first matching prefix counts.
"""

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

_KEYSTONE: Final = 'job=~"$job", instance=~"$instance"'
_TOKENS: Final = f'{_KEYSTONE}, http_route="{ROUTE}", http_request_method=~"$method"'
PLACEHOLDERS: Final[Mapping[str, str]] = {
    "KEYSTONE": _KEYSTONE,
    "TOKENS": _TOKENS,
    "ARMS": f'{_TOKENS}, keylag_run=~"$run"',
    "ARM_WORKERS": f'{_KEYSTONE}, keylag_run=~"$run"',
    "RECORDED": 'job=~"$job", http_request_method=~"$method"',
    "EXPORTER": 'instance=~"$exporter"',
    "TOKENS_LOG": f'instance=~"$exporter", route=~"$method {ROUTE}"',
    "MEMCACHED": 'instance=~"$memcached"',
    "SERVICE": 'job=~"$service", instance=~"$worker"',
    "RATE": "$__rate_interval",
    "SHOWN": "$__range",
    "ALL_TOKENS": f'http_route="{ROUTE}"',
    "IN_TIME": f'http_route="{ROUTE}", le=~"{OBJECTIVE_SECONDS}(\\\\.0)?"',
}
"""Placeholders in queries, and the matchers or ranges that replace them.

The last two are for rules, which have no variables.
"""

COLORS: Final[Mapping[str, str]] = {
    "sql": "blue",
    "cache": "green",
    "revocation": "red",
    "password_hash": "orange",
    "token_crypto": "purple",
    "orm": "light-blue",
    "other": "gray",
}
"""Colours of the categories in all panels."""

LABEL_HEADINGS: Final[Mapping[str, str]] = {
    "http_response_status_code": "status",
    "keylag_run": "arm",
    "keystone_auth_method": "method",
    "keystone_cache_backend": "cache",
    "keystone_cache_function": "function",
    "keystone_cache_region": "region",
    "keystone_password_hash_algorithm": "password hash",
    "keystone_token_provider": "token",
    "instance": "worker",
    "table_class": "tables",
}
"""Table headings of labels with long names."""

METRIC_SENDERS: Final[Mapping[str, str]] = {
    "keylag_slow_log_": "`keylag-exporter slow-log`, beside the database",
    "keylag_proxysql_": "`keylag-exporter proxysql`, beside ProxySQL",
    "keylag_revocations_": "`keylag-exporter revocations`, beside the database",
    "keylag_uwsgi_": "`keylag-exporter uwsgi`, beside Keystone",
    "keylag_exporter_": "`keylag-exporter`",
    "memcached_": "`keylag-exporter memcached` or the official memcached_exporter",
    "keylag:": "the recording rules of dashboards/generated/rules",
    "keystone_auth_token_": "`keylag-otel`, inside the service",
    "keystone_": "`keylag-otel`, inside Keystone",
    "http_server_": "`keylag-otel`, inside Keystone",
    "process_cpu_": "`keylag-otel`, inside Keystone",
    "cpython_gc_": "`keylag-otel`, inside Keystone",
}
"""Prefix of metric names, and their sender, shown in panels without data.

The first matching prefix counts.
"""

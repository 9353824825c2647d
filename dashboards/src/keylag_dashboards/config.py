"""Configuration of all dashboards and rules: selectors, objective, colours."""

from collections.abc import Mapping
from typing import Final

TAG: Final = "keylag"
UID_PREFIX: Final = "keylag-"
TIME_RANGE: Final = ("now-1h", "now")
REFRESH: Final = "30s"
DATASOURCE: Final = "${datasource}"
IMPORT_INPUT: Final = "DS_PROMETHEUS"
"""The name by which Grafana's Import page asks for the data source."""
OLDEST_GRAFANA: Final = "10.1.0"
"""The Grafana whose schema the dashboards have; newer ones migrate it by themselves."""

RUNBOOK_URL: Final = "https://git.example.org/keylag/docs/runbook.md"
"""Address of docs/runbook.md in alerts: a placeholder, like all of example.org.

`python -m keylag_dashboards --runbook-url` generates the rules with another.
"""

ROUTE: Final = "/v3/auth/tokens"
OBJECTIVE_SECONDS: Final = 1
"""A token call that takes longer than this is slow; a bucket's bound."""
OBJECTIVE_SHARE: Final = 0.99
"""How many of the token calls are to be answered in time and without a 5xx."""

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
"""What a query writes in capitals, and the matchers or the range it stands for.

The last two are for rules, which know no variables.
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
"""The categories of the headline stack have the same colour everywhere."""

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
"""What tables call the labels whose names are long."""

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
"""How the name of a metric begins, and who sends it: shown where there is no data.

Of several that fit, the first.
"""

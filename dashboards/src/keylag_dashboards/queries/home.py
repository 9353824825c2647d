"""Queries of *Home*: the answers, alerts, and what reports."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.causes import METRICS
from keylag_dashboards.promql import or_zero
from keylag_dashboards.queries.tokens import ANSWERS

_REPORTERS: Final[Mapping[tuple[str, str], str]] = {
    ("keylag-otel in Keystone", "all"): "count(keystone_configuration_info{KEYSTONE})",
    ("recording rules", "all"): "count(keylag:token_calls:rate{KEYSTONE})",
    ("keylag-otel in services", "Services"): (
        "count(keystone_auth_token_configuration_info{CLOUD})"
    ),
    **{
        (f"keylag-exporter {source}", needed_by): (
            f'sum(keylag_exporter_source_up{{CLOUD, source="{source}"}})'
        )
        for source, needed_by in {
            "slow-log": "SQL, Revocation",
            "revocations": "Revocation",
            "uwsgi": "Workers",
            "proxysql": "SQL",
        }.items()
    },
    ("a memcached exporter", "Cache"): "sum(memcached_up{CLOUD})",
    ("an exporter of the host", "Host"): "count(node_load1{CLOUD})",
    ("an exporter of its programs", "Host"): (
        "count(count by (instance) (namedprocess_namegroup_num_procs{CLOUD}))"
    ),
    ("an exporter of the database", "Galera"): "sum(mysql_up{CLOUD})",
    ("keylag diagnose --listen", "Token calls"): (
        f"sum({METRICS['success']}{{CLOUD}})"
    ),
}
"""Who reports and which dashboards need it, with the number of reporters."""


def _named(source: str, needed_by: str, reporters: str) -> str:
    labels = f"""label_replace({reporters} or on () vector(-1),
        "source", "{source}", "", "")"""
    return f'label_replace({labels}, "needed_by", "{needed_by}", "", "")'


QUERIES: Final[Mapping[str, str]] = {
    **{name: query for name, query in ANSWERS.items() if "quantiles" not in name},
    "firing": or_zero(
        """max by (alertname, severity, job) (
        ALERTS{alertname=~"Keylag.*", alertstate="firing"})""",
        "alertname",
        "no alert fires",
        "keylag:token_calls:rate",
    ),
    "reporters": " or ".join(
        _named(source, needed_by, reporters)
        for (source, needed_by), reporters in _REPORTERS.items()
    ),
}

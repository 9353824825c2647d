"""The variables of dashboards: label values from Prometheus."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from keylag_dashboards.config import (
    COARSE,
    COARSE_RANGE_SECONDS,
    COARSE_SECONDS,
    FINE,
    PLACEHOLDERS,
    RECORDING_SECONDS,
)


@dataclass(frozen=True)
class Variable:
    """Values of a label to choose from; `selected` at first, else all."""

    label: str
    description: str
    query: str
    regex: str
    """What of the query's result is the value."""
    selected: tuple[str, ...] = ()
    all_value: str = ".+"
    """Regular expression of the choice `All`."""
    hidden: bool = False


RECORDED_SERIES: Final = "recorded"
"""Name of the variable that every dashboard has."""
_CLOUD: Final = PLACEHOLDERS["CLOUD"]
_OF_JOB: Final = PLACEHOLDERS["JOBS"]
_CALLS: Final = "keylag:token_calls:rate"
"""Few series, which have all labels of Keystone but the worker."""
_SOURCES: Final = {
    "proxysql": "ProxySQL's exporter",
    "slow-log": "the slow log's exporter",
    "revocations": "the revocation table's exporter",
    "memcached": "memcached's exporter",
    "uwsgi": "uWSGI's exporter",
    "host": "the host's exporter",
    "processes": "the programs' exporter",
    "mysql": "the database server's exporter",
}
"""Sources of keylag-exporter that rows of panels need."""
_OFFICIAL: Final = {
    "memcached": "memcached_up",
    "host": "(node_load1 >= bool 0)",
    "processes": "(namedprocess_namegroup_num_procs >= bool 0)",
    "mysql": "mysql_up",
}
"""What the official exporters of these sources have, 1 if they work."""


def _values(label: str, series: str) -> tuple[str, str]:
    """Return the query and the expression of the values that a label of series had.

    Grafana's own `label_values` looks each value up in the index of all series.
    """
    query = f"count by ({label}) (last_over_time({series}[$__range]))"
    return f"query_result({query})", f'/{label}="([^"]+)"/'


def state_variable(source: str) -> str:
    """Return the name of the variable with the state of an exporter's source."""
    return f"{source.replace('-', '_')}_state"


def _state(source: str, title: str) -> Variable:
    """Return a hidden variable that says whether a source reports."""
    up = f'max(keylag_exporter_source_up{{source="{source}"}})'
    if source in _OFFICIAL:
        up = f"max({up} or {_OFFICIAL[source]})"

    def words(condition: str, text: str) -> str:
        return f'label_replace({condition}, "state", "{text}", "", "")'

    states = (
        words(f"{up} == 1", "reporting"),
        words(f"{up} == 0", "not reachable"),
        words("vector(0)", "not installed"),
    )
    return Variable(
        title,
        f"Whether {title} reports; part of a row's title",
        f"query_result({' or on () '.join(states)})",
        '/state="([^"]+)"/',
        hidden=True,
    )


def _recorded() -> Variable:
    """Return the hidden variable with the recorded series of the time shown.

    Its value is the end of their names, its text their interval in seconds.
    """

    def chosen(series: str, seconds: int, comparison: str) -> str:
        shown = f"vector($__range_s) {comparison} {COARSE_RANGE_SECONDS}"
        return f'label_replace({shown}, "series", "{series} {seconds}", "", "")'

    fine = chosen(FINE, RECORDING_SECONDS, "<=")
    coarse = chosen(COARSE, COARSE_SECONDS, ">")
    return Variable(
        "Recorded series",
        "Which recorded series panels read: rates, or means of them over many days",
        f"query_result({fine} or {coarse})",
        '/series="(?<value>[^ ]+) (?<text>[0-9]+)"/',
        hidden=True,
    )


VARIABLES: Final[Mapping[str, Variable]] = {
    "cluster": Variable(
        "Cluster",
        "Label `cluster`: resource attribute, or label of Prometheus' targets",
        *_values("cluster", _CALLS),
        all_value=".*",
    ),
    "region": Variable(
        "Region",
        "Label `region`: resource attribute, or label of Prometheus' targets",
        *_values("region", f'{_CALLS}{{cluster=~"$cluster"}}'),
        all_value=".*",
    ),
    "job": Variable(
        "Job",
        "Keystone's service name (OTEL_SERVICE_NAME)",
        *_values("job", f"{_CALLS}{{{_CLOUD}}}"),
    ),
    "host": Variable(
        "Controller",
        "Host of Keystone's workers (host.name)",
        *_values("host_name", f"{_CALLS}{{{_OF_JOB}}}"),
        all_value=".*",
    ),
    "instance": Variable(
        "Worker",
        "Keystone's workers, as host/number",
        *_values(
            "instance", f'keystone_configuration_info{{{_OF_JOB}, host_name=~"$host"}}'
        ),
        all_value=".*",
    ),
    "method": Variable(
        "Method",
        "POST issues a token, GET validates one, DELETE revokes one",
        *_values("http_request_method", f"{_CALLS}{{{_OF_JOB}}}"),
        selected=("POST", "GET"),
    ),
    "service": Variable(
        "Service",
        "Name of a service with auth_token (OTEL_SERVICE_NAME)",
        *_values("job", f"keystone_auth_token_configuration_info{{{_CLOUD}}}"),
    ),
    "exporter": Variable(
        "Exporter",
        "Address of a keylag-exporter",
        *_values("instance", f"keylag_exporter_source_up{{{_CLOUD}}}"),
        all_value=".*",
    ),
    "memcached": Variable(
        "memcached",
        "Address of a memcached exporter",
        *_values("instance", f"memcached_up{{{_CLOUD}}}"),
    ),
    "database": Variable(
        "Database",
        "Address or name of a database server with an exporter",
        *_values("instance", f"mysql_up{{{_CLOUD}}}"),
    ),
    "machine": Variable(
        "Host",
        "Name or address of a host with an exporter, without its port",
        _values("instance", f"node_load1{{{_CLOUD}}}")[0],
        '/instance="(.+?)(?::[0-9]+)?"/',
    ),
    "run": Variable(
        "Run",
        "The arms of an experiment: the resource attribute keylag.run",
        *_values("keylag_run", f'{_CALLS}{{{_OF_JOB}, keylag_run!=""}}'),
    ),
    RECORDED_SERIES: _recorded(),
    **{state_variable(name): _state(name, title) for name, title in _SOURCES.items()},
}

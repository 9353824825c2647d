"""The variables of dashboards: label values from Prometheus."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from keylag_dashboards.config import PLACEHOLDERS, ROUTE
from keylag_dashboards.recorded import recorded_name


@dataclass(frozen=True)
class Variable:
    """Values of a label to choose from; `selected` at first, else all."""

    label: str
    description: str
    query: str
    selected: tuple[str, ...] = ()
    all_value: str = ".+"
    """Regular expression of the choice `All`."""
    hidden: bool = False
    regex: str = ""
    """What of the query's result is the value."""


_WORKERS: Final = "keystone_configuration_info"
"""One series for each worker of Keystone."""
_CLOUD: Final = PLACEHOLDERS["CLOUD"]
_OF_JOB: Final = PLACEHOLDERS["JOBS"]
_CALLS: Final = recorded_name("http_server_request_duration_seconds_count")
_SOURCES: Final = {
    "proxysql": "ProxySQL's exporter",
    "slow-log": "the slow log's exporter",
    "revocations": "the revocation table's exporter",
    "memcached": "memcached's exporter",
    "uwsgi": "uWSGI's exporter",
}
"""Sources of keylag-exporter that rows of panels need."""


def state_variable(source: str) -> str:
    """Return the name of the variable with the state of an exporter's source."""
    return f"{source.replace('-', '_')}_state"


def _state(source: str, title: str) -> Variable:
    """Return a hidden variable that says whether a source reports."""
    up = f'max(keylag_exporter_source_up{{source="{source}"}})'
    if source == "memcached":
        up = f"max({up} or memcached_up)"

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
        hidden=True,
        regex='/state="([^"]+)"/',
    )


VARIABLES: Final[Mapping[str, Variable]] = {
    "cluster": Variable(
        "Cluster",
        "Label `cluster`: resource attribute, or label of Prometheus' targets",
        f"label_values({_WORKERS}, cluster)",
        all_value=".*",
    ),
    "region": Variable(
        "Region",
        "Label `region`: resource attribute, or label of Prometheus' targets",
        f'label_values({_WORKERS}{{cluster=~"$cluster"}}, region)',
        all_value=".*",
    ),
    "job": Variable(
        "Job",
        "Keystone's service name (OTEL_SERVICE_NAME)",
        f"label_values({_WORKERS}{{{_CLOUD}}}, job)",
    ),
    "host": Variable(
        "Controller",
        "Host of Keystone's workers (host.name)",
        f"label_values({_WORKERS}{{{_OF_JOB}}}, host_name)",
        all_value=".*",
    ),
    "instance": Variable(
        "Worker",
        "Keystone's workers, as host/number",
        f'label_values({_WORKERS}{{{_OF_JOB}, host_name=~"$host"}}, instance)',
    ),
    "method": Variable(
        "Method",
        "POST issues a token, GET validates one, DELETE revokes one",
        f'label_values({_CALLS}{{{_OF_JOB}, http_route="{ROUTE}"}},'
        " http_request_method)",
        selected=("POST", "GET"),
    ),
    "service": Variable(
        "Service",
        "Name of a service with auth_token (OTEL_SERVICE_NAME)",
        f"label_values(keystone_auth_token_configuration_info{{{_CLOUD}}}, job)",
    ),
    "exporter": Variable(
        "Exporter",
        "Address of a keylag-exporter",
        f"label_values(keylag_exporter_source_up{{{_CLOUD}}}, instance)",
    ),
    "memcached": Variable(
        "memcached",
        "Address of a memcached exporter",
        f"label_values(memcached_up{{{_CLOUD}}}, instance)",
    ),
    "run": Variable(
        "Run",
        "The arms of an experiment: the resource attribute keylag.run",
        f'label_values({_CALLS}{{{_OF_JOB}, http_route="{ROUTE}", keylag_run!=""}},'
        " keylag_run)",
    ),
    **{state_variable(name): _state(name, title) for name, title in _SOURCES.items()},
}

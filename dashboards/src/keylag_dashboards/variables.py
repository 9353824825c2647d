"""The variables of dashboards: label values from Prometheus."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from keylag_dashboards.config import ROUTE


@dataclass(frozen=True)
class Variable:
    """Values of a label to choose from; `selected` at first, else all."""

    label: str
    description: str
    query: str
    selected: tuple[str, ...] = ()
    all_value: str = ".+"
    """Regular expression of the choice `All`."""


_REQUESTS: Final = "http_server_request_duration_seconds_count"
_OF_JOB: Final = f'{_REQUESTS}{{job=~"$job"}}'
_TOKENS: Final = f'{_REQUESTS}{{job=~"$job", http_route="{ROUTE}"}}'
_SERVED: Final = "keystone_auth_token_request_duration_seconds_count"

VARIABLES: Final[Mapping[str, Variable]] = {
    "job": Variable(
        "Job",
        "Keystone's service name (OTEL_SERVICE_NAME)",
        f"label_values({_REQUESTS}, job)",
    ),
    "instance": Variable(
        "Instance",
        "Keystone's workers, as host/number",
        f"label_values({_OF_JOB}, instance)",
    ),
    "method": Variable(
        "Method",
        "POST issues a token, GET validates one, DELETE revokes one",
        f"label_values({_TOKENS}, http_request_method)",
        selected=("POST", "GET"),
    ),
    "service": Variable(
        "Service",
        "Name of a service with auth_token (OTEL_SERVICE_NAME)",
        f"label_values({_SERVED}, job)",
    ),
    "worker": Variable(
        "Worker",
        "The service's workers, as host/number",
        f'label_values({_SERVED}{{job=~"$service"}}, instance)',
    ),
    "exporter": Variable(
        "Exporter",
        "Address of a keylag-exporter",
        "label_values(keylag_exporter_source_up, instance)",
    ),
    "memcached": Variable(
        "memcached",
        "Address of a memcached exporter",
        "label_values(memcached_up, instance)",
    ),
    "run": Variable(
        "Run",
        "The arms of an experiment: the resource attribute keylag.run",
        f"label_values({_TOKENS}, keylag_run)",
        all_value=".*",
    ),
}

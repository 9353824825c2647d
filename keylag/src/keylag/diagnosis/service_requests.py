"""Requests of services that use auth_token, by method."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from keylag.diagnosis.facts import FEW_CALLS, Facts, Kind, ratio

SERVICE: Final = "service"
"""In the place of an authentication method, which a service's requests lack."""


@dataclass(frozen=True)
class ServiceRequests:
    """Requests of services with one method."""

    method: str
    per_second: float
    seconds: float
    """Mean wall time, from auth_token inward."""
    phases: Mapping[str, float]
    """Seconds per request by phase."""

    @property
    def kind(self) -> Kind:
        """Their kind: ("GET", "service")."""
        return self.method, SERVICE


def find_service_requests(facts: Facts) -> list[ServiceRequests]:
    """Return the requests of services by method, without methods of a few requests.

    There are none without keylag-otel in a service.
    """
    if not facts.has("service_requests", "service_seconds", "service_cells"):
        return []
    label = "http_request_method"
    seconds = facts.by("service_seconds", label)
    return [
        ServiceRequests(
            method,
            rate,
            ratio(seconds.get(method, 0.0), rate),
            _phases(facts, method, rate),
        )
        for method, rate in facts.by("service_requests", label).items()
        if rate * facts.window.seconds >= FEW_CALLS
    ]


def find_service_kind(facts: Facts, kind: Kind) -> ServiceRequests | None:
    """Return the requests of services of a kind; None if there are no such ones."""
    return next((one for one in find_service_requests(facts) if one.kind == kind), None)


def _phases(facts: Facts, method: str, rate: float) -> dict[str, float]:
    spent = facts.by("service_cells", "keystone_phase", http_request_method=method)
    return {phase: seconds / rate for phase, seconds in spent.items()}

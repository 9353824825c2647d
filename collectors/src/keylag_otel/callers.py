"""The service that asks Keystone to validate a token, from its user name.

Deployments name service users after their services; all other users get the label
``other``.  The User-Agent is that of keystoneauth, whatever service sends it.
"""

from __future__ import annotations

from typing import Any

from keylag_otel.counters import counter_id
from keylag_otel.request_timer import RequestTimer

OTHER = "other"

#: Where keystonemiddleware leaves the caller's token.  Keystone's own context has it
#: too, but logs a warning at each access.
_TOKEN_AUTH = "keystone.token_auth"  # noqa: S105 - a key of the environment
_USER_NAME = "HTTP_X_USER_NAME"

#: OpenStack projects with an API, and the service of Keylag's stacks.
SERVICES = frozenset(
    (
        *("adjutant", "aodh", "barbican", "blazar", "ceilometer", "cinder"),
        *("cloudkitty", "cyborg", "designate", "freezer", "glance", "gnocchi"),
        *("heat", "ironic", "ironic-inspector", "keylag-service", "magnum"),
        *("manila", "masakari", "mistral", "monasca", "murano", "neutron"),
        *("nova", "octavia", "panko", "placement", "sahara", "senlin", "skyline"),
        *("swift", "tacker", "trove", "vitrage", "watcher", "zaqar", "zun"),
    )
)


def service_of_user(user_name: str) -> str:
    """Return the user name if it is a known service, else ``other``."""
    return user_name if user_name in SERVICES else OTHER


def count_validation(
    timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count a validation by its caller."""
    del args, kwargs
    caller = timer.environ.get(_TOKEN_AUTH)
    # Without a token, the client may claim any name.
    if caller is not None and caller.has_user_token:
        timer.increment(
            counter_id("validations", service_of_user(timer.environ[_USER_NAME]))
        )

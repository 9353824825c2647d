"""Which service asks Keystone to validate, as far as that can be known.

The User-Agent does not tell: auth_token asks through keystoneclient, which names
itself.  The user whose token asks does, since deployments name the users of
services after them; any other name is nobody's business here.
"""

from __future__ import annotations

from typing import Any

from keylag_otel.clock import Clock
from keylag_otel.tally import tally

OTHER = "other"

#: Where keystonemiddleware leaves whose token asks.  Keystone's own context has
#: it too, but warns each time that it is asked.
_ASKED_BY = "keystone.token_auth"
_USER_NAME = "HTTP_X_USER_NAME"

#: The projects of OpenStack that have an API, and the service of Keylag's stacks.
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


def caller_of(user_name: str) -> str:
    """Return the service that a user is named after, or ``other``."""
    return user_name if user_name in SERVICES else OTHER


def note_caller(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a validation by its caller."""
    del args, kwargs
    asking = clock.environ.get(_ASKED_BY)
    # Without a token, the name is the client's own word.
    if asking is not None and asking.has_user_token:
        clock.tally(tally("validations", caller_of(clock.environ[_USER_NAME])))

"""A network before Keystone."""

from collections.abc import Iterator
from dataclasses import asdict

from keylag.faults import parts
from keylag.faults.changes.front import RelayInFront
from keylag.faults.changes.helper import Helper
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(site: Site, delay_ms: float) -> Iterator[Change]:
    behind = site.free_address()
    places = {"listen": site.address("keystone"), "upstream": behind, "patient": True}
    relay = Helper("relay", {**places, "delay_ms": delay_ms})
    environment = {"KEYLAG_UWSGI_LISTEN": behind}
    yield RelayInFront(environment=environment, relay=asdict(relay))


FAULT = Fault(
    id="N1",
    name="network",
    summary="Clients and Keystone are far apart.",
    mechanism=(
        "A relay that delays what passes takes Keystone's address, and Keystone "
        "moves to another port behind it."
    ),
    slows=(POST, GET),
    strength=Strength(10, "ms in each direction", 0, 10_000),
    uses=uses(parts.FRONT),
    changes=_changes,
)

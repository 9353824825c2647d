"""Clients that log out."""

from collections.abc import Iterator

from keylag.faults.changes.helper import Helper
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, per_second: float) -> Iterator[Change]:
    yield Helper("storm", {"kind": "log-out", "per_second": per_second})


FAULT = Fault(
    id="R3",
    name="revocation-churn",
    summary=(
        "Clients revoke tokens all the time; each revocation invalidates all "
        "cached tokens."
    ),
    mechanism=("A client issues a token and deletes it, several times a second."),
    slows=(POST, GET),
    strength=Strength(4, "logouts per second", 0.01, 1000),
    uses=uses("the logouts"),
    changes=_changes,
)

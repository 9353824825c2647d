"""A client with an old password."""

from collections.abc import Iterator

from keylag.faults.changes.helper import Helper
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, per_second: float) -> Iterator[Change]:
    yield Helper("storm", {"kind": "wrong-password", "per_second": per_second})


FAULT = Fault(
    id="H3",
    name="failed-logins",
    summary="A client tries wrong passwords many times a second.",
    mechanism=("A client requests tokens by wrong passwords of the stack's users."),
    slows=(POST, GET),
    strength=Strength(4, "wrong passwords per second", 0.01, 1000),
    uses=uses("the failed log-ins"),
    changes=_changes,
)

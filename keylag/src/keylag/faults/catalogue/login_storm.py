"""A client that does not reuse its tokens."""

from collections.abc import Iterator

from keylag.faults.changes.helper import Helper
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, per_second: float) -> Iterator[Change]:
    yield Helper("storm", {"kind": "log-in", "per_second": per_second})


FAULT = Fault(
    id="H2",
    name="login-storm",
    summary="A client logs in many times a second.",
    mechanism=("A client requests tokens by the passwords of the stack's users."),
    slows=(POST, GET),
    strength=Strength(4, "log-ins per second", 0.01, 1000),
    uses=uses("the log-ins"),
    changes=_changes,
)

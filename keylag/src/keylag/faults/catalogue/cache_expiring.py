"""Values that expire before they are used again."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, strength: float) -> Iterator[Change]:
    yield Options(environment={"OS_CACHE__EXPIRATION_TIME": f"{strength:.0f}"})


FAULT = Fault(
    id="C1",
    name="cache-disabled",
    variant="expiring",
    summary="Cached values expire at once.",
    mechanism="Keystone restarts with a short `[cache] expiration_time`.",
    slows=(POST, GET),
    uses=uses(parts.CACHE),
    needs=(parts.CACHED,),
    changes=_changes,
    strength=Strength(1, "s until values expire", 1, 60),
)

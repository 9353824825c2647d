"""A database far away."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(site: Site, delay_ms: float) -> Iterator[Change]:
    far = site.free_address()
    near = "proxysql" if "proxysql" in site.options.extras else "mariadb"
    upstream = site.address(near)
    yield Helper("relay", {"listen": far, "upstream": upstream, "delay_ms": delay_ms})
    yield Options(environment={"OS_DATABASE__CONNECTION": site.database_url(far)})


FAULT = Fault(
    id="D1",
    name="database-far",
    summary=("Each statement takes longer, as if the database were in another site."),
    mechanism=(
        "Keystone restarts with the address of a relay that delays what passes."
    ),
    slows=(POST, GET),
    strength=Strength(5, "ms in each direction", 0, 10_000),
    uses=uses(parts.DATABASE_ADDRESS),
    changes=_changes,
)

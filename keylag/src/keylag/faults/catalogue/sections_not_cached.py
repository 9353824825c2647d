"""Sections of Keystone that do not cache."""

from collections.abc import Iterator
from typing import Final

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, uses
from keylag.faults.site import Site

SECTIONS: Final = ("IDENTITY", "RESOURCE", "ROLE", "CATALOG")


def _changes(_: Site, __: float) -> Iterator[Change]:
    yield Options(environment={f"OS_{name}__CACHING": "false" for name in SECTIONS})


FAULT = Fault(
    id="C1",
    name="cache-disabled",
    variant="sections",
    summary="Keystone caches tokens, and nothing else.",
    mechanism=(
        "Keystone restarts with `caching = false` in [identity], [resource], [role] "
        "and [catalog]."
    ),
    slows=(POST, GET),
    uses=uses(parts.CACHE),
    needs=(parts.CACHED,),
    changes=_changes,
)

"""A service that does not cache tokens."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import SERVICE, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, seconds: float) -> Iterator[Change]:
    option = {"OS_KEYSTONE_AUTHTOKEN__TOKEN_CACHE_TIME": f"{seconds:.0f}"}
    yield Options(service=option)


FAULT = Fault(
    id="M1",
    name="token-cache",
    summary=(
        "The sample service validates tokens in Keystone that it has validated before."
    ),
    mechanism=(
        "The service restarts with another `[keystone_authtoken] "
        "token_cache_time`; -1 is no cache."
    ),
    slows=(SERVICE,),
    strength=Strength(-1, "s that a validation is cached", -1, 3600),
    uses=uses(parts.SERVICE_CACHE),
    needs=(parts.WITH_SERVICE,),
    changes=_changes,
)

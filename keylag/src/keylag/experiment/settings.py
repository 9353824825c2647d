"""What an arm may differ in: its Keystone, what is around it, and what it holds."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from keylag.tools.venvs import NEWEST_RELEASE

Scalar = str | int | float | bool
Sections = Mapping[str, Mapping[str, Scalar]]
"""keystone.conf: options by section."""
Properties = Mapping[str, Scalar]
"""Of a load plan, by name."""


class Strict(BaseModel):
    """No key that is not known, no value of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Arm(Strict):
    """How one Keystone differs from the base; what is not given is the base's."""

    release: str = NEWEST_RELEASE
    """Keystone's; a key of venvs.KEYSTONES."""
    cache: str = "memcache_pool"
    """A key of keystone.CACHE_BACKENDS."""
    hung_cache: bool = False
    """Whether the cache's server is frozen during each block, connections and all."""
    processes: Annotated[int, Field(ge=1, le=64)] = 2
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    """Of each process."""
    keystone: Sections = {}
    """Options of keystone.conf by section."""
    mariadb: Mapping[str, Scalar] = {}
    """Variables of the database server."""
    proxysql: bool = False
    """Whether ProxySQL stands before the database."""
    query_cache: Mapping[str, Annotated[int, Field(ge=1)]] = {}
    """Statements whose answers ProxySQL keeps: a pattern, and for how many ms."""
    module: str = "keylag_otel.wsgi:application"
    """The WSGI application; it may lie beside the plans."""
    environment: Mapping[str, str] = {}
    """More variables for Keystone's workers."""
    users: Annotated[int, Field(ge=1, le=100_000)] = 100
    more_services: Annotated[int, Field(ge=0, le=10_000)] = 0
    """In the catalog, beside the cloud's own; each has two endpoints."""
    revocation_events: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    revoked_by: Literal["audit_id", "audit_chain_id"] = "audit_id"
    properties: Properties = {}
    """Of the load, where this arm has another one."""
    switch: str = ""
    """Of a Keystone that is not ours: the shell command that makes it this arm."""

    def over(self, base: Self) -> Self:
        """Return the base with what this arm says; tables are merged."""
        given = self.model_dump(exclude_unset=True)
        return type(self).model_validate(_merged(base.model_dump(), given))


ELSEWHERE: Final = frozenset({"switch", "properties"})
"""What an arm may say of a Keystone that is not ours."""


def _merged(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, `given` first; a table in both is merged."""
    merged = dict(base)
    for key, value in given.items():
        inner = isinstance(value, dict) and isinstance(base.get(key), Mapping)
        merged[key] = _merged(base[key], value) if inner else value
    return merged

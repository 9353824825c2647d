"""The settings of an arm: its Keystone, its other servers, its data and its load."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from keylag.tools.venvs import NEWEST_RELEASE

Scalar = str | int | float | bool
Sections = Mapping[str, Mapping[str, Scalar]]
"""Options of keystone.conf, by section and name."""
Properties = Mapping[str, Scalar]
"""Properties of a load plan, by name."""


class StrictModel(BaseModel):
    """Refuses unknown keys and values of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Arm(StrictModel):
    """One configuration of Keystone; settings that are not given are the base's."""

    release: str = NEWEST_RELEASE
    """Release of Keystone, a key of venvs.KEYSTONE_TOOLS."""
    cache: str = "memcache_pool"
    """A key of keystone.CACHE_BACKENDS."""
    hung_cache: bool = False
    """Whether the cache server is suspended (SIGSTOP) during each round."""
    processes: Annotated[int, Field(ge=1, le=64)] = 2
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    """Threads of each process."""
    keystone: Sections = {}
    """Options of keystone.conf, by section."""
    mariadb: Mapping[str, Scalar] = {}
    """System variables of the database server."""
    proxysql: bool = False
    """Whether ProxySQL runs between Keystone and the database."""
    query_cache: Mapping[str, Annotated[int, Field(ge=1)]] = {}
    """ProxySQL's query cache: a pattern of statements, and its lifetime in ms."""
    module: str = "keylag_otel.wsgi:application"
    """The WSGI application; its module may be in the folder of the plans."""
    environment: Mapping[str, str] = {}
    """More environment variables of Keystone's workers."""
    users: Annotated[int, Field(ge=1, le=100_000)] = 100
    more_services: Annotated[int, Field(ge=0, le=10_000)] = 0
    """More services in the catalog, with two endpoints each."""
    revocation_events: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    revoked_by: Literal["audit_id", "audit_chain_id"] = "audit_id"
    properties: Properties = {}
    """Properties of the load that differ in this arm."""
    optional: bool = False
    """Whether a run leaves the arm out if a program that it needs is missing."""
    switch: str = ""
    """For one remote Keystone: the shell command that configures it as this arm."""
    url: str = ""
    """Of a remote Keystone that is this arm already."""
    restart: str = ""
    """The shell command that restarts the Keystone at `url`."""

    def merged_over(self, base: Self) -> Self:
        """Return the base with the settings of this arm; tables are merged."""
        given = self.model_dump(exclude_unset=True)
        inherited = base.model_dump(exclude=set(OWN_SETTINGS))
        return type(self).model_validate(_merge_tables(inherited, given))


OWN_SETTINGS: Final = frozenset({"switch", "url", "restart"})
"""The settings that an arm does not inherit from the base."""


def _merge_tables(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in given.items():
        inner = isinstance(value, dict) and isinstance(base.get(key), Mapping)
        merged[key] = _merge_tables(base[key], value) if inner else value
    return merged

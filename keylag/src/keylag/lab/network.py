"""The names and addresses of two sites, their hosts, and the link between them.

Site `a` has the network 10.64.1.0/24, its router 10.64.1.254 and its first host, `a1`,
10.64.1.1.  All are in namespaces of their own, so every network has these addresses.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.services.base import folder_digest

SITE_NAMES: Final = ("a", "b")
MOST_HOSTS: Final = 20
WAN_INTERFACE: Final = "wan"
"""The interface of a router to the other site."""
HOST_INTERFACE: Final = "eth0"
MTU_BYTES: Final = 1500


@dataclass(frozen=True)
class Host:
    """A host, or the router of a site: a namespace and its address."""

    name: str
    namespace: str
    address: str


@dataclass(frozen=True)
class Site:
    """A router and the hosts behind it."""

    router: Host
    hosts: tuple[Host, ...]
    network: str

    def __iter__(self) -> Iterator[Host]:
        """Iterate over the router and the hosts."""
        yield self.router
        yield from self.hosts


@dataclass(frozen=True)
class Network:
    """Two sites whose namespaces belong to a folder."""

    folder: Path
    hosts: int
    """Of each site."""

    @property
    def sites(self) -> tuple[Site, Site]:
        """Both sites."""
        first, second = (
            self._site(name, number) for number, name in enumerate(SITE_NAMES, start=1)
        )
        return first, second

    def _site(self, name: str, number: int) -> Site:
        prefix = namespace_prefix(self.folder)
        network = f"10.64.{number}"
        hosts = tuple(
            Host(f"{name}{one}", f"{prefix}{name}{one}", f"{network}.{one}")
            for one in range(1, self.hosts + 1)
        )
        router = Host(name, f"{prefix}{name}", f"{network}.254")
        return Site(router, hosts, f"{network}.0/24")

    def find(self, name: str) -> Host | None:
        """Return the host or router of a name such as `a1` or `a`."""
        found = (one for site in self.sites for one in site if one.name == name)
        return next(found, None)

    @property
    def names(self) -> list[str]:
        """The names of all routers and hosts."""
        return [one.name for site in self.sites for one in site]


def namespace_prefix(folder: Path) -> str:
    """Return how the names of the namespaces of a folder begin."""
    return f"keylag-{folder_digest(folder)}-"

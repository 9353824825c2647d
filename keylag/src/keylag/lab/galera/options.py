"""The settings of the cluster that an experiment compares."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from keylag.lab.saved_options import SavedOptions

NODES: Final = 3

WAN_PROVIDER_OPTIONS: Final[Mapping[str, str]] = {
    # A link may be silent for some seconds; then no site gives up the other.
    "evs.suspect_timeout": "PT10S",
    "evs.inactive_timeout": "PT20S",
    "evs.install_timeout": "PT15S",
    # More messages may be on their way: with few, a long link would stay idle.
    "evs.send_window": "512",
    "evs.user_send_window": "256",
}
"""What differs from Galera's defaults, which are for a local network."""


@dataclass(frozen=True)
class ClusterOptions(SavedOptions):
    """Settings of all nodes."""

    FILE: ClassVar = "cluster.json"
    LABORATORY: ClassVar = "galera-wan"
    NOTHING: ClassVar = "No cluster"

    nodes: int = NODES
    """Database nodes of each site."""
    segments: bool = True
    """Whether each site is a segment (`gmcast.segment`): a write passes the link once,
    and a node there passes it on."""
    far_database: bool = False
    """Whether the HAProxy of site a has the nodes of site b instead of its own."""
    sync_wait: bool = False
    """Whether Keystone's reads wait for the cluster: `mysql_wsrep_sync_wait = 1`."""
    cache: str = "memcache_pool"
    """Keystone's cache, as for `keylag up --cache`."""
    gcache_size: str = "64M"
    """Of the writes that a node keeps for others, who get them by IST."""
    provider: Mapping[str, str] = field(
        default_factory=lambda: dict(WAN_PROVIDER_OPTIONS)
    )
    """More options of Galera; empty for its own time-outs and windows."""
    label: str = LABORATORY
    """Label `cluster` of the metrics of both sites."""

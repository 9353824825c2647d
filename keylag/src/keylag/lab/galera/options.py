"""The settings of the cluster that an experiment compares."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from keylag.lab.iproute import LabError
from keylag.state import write_output

NODES: Final = 3
FILE: Final = "cluster.json"
"""In the folder of a laboratory that runs."""

WAN_PROVIDER_OPTIONS: Final[Mapping[str, str]] = {
    # After a lost packet of a long link, an answer may take seconds.
    "evs.suspect_timeout": "PT10S",
    "evs.inactive_timeout": "PT20S",
    "evs.install_timeout": "PT15S",
    # More messages may be on their way: with few, a long link would stay idle.
    "evs.send_window": "512",
    "evs.user_send_window": "256",
}
"""What differs from Galera's defaults, which are for a local network."""


@dataclass(frozen=True)
class ClusterOptions:
    """Settings of all nodes."""

    nodes: int = NODES
    """Database nodes of each site."""
    segments: bool = True
    """Whether each site is a segment (`gmcast.segment`): a write passes the link once,
    and a node there passes it on."""
    far_database: bool = False
    """Whether the HAProxy of site a has the nodes of site b instead of its own."""
    sync_wait: bool = False
    """Whether Keystone's reads wait for the cluster, by `mysql_wsrep_sync_wait`."""
    cache: str = "memcache_pool"
    """Keystone's cache, as for `keylag up --cache`."""
    gcache_size: str = "64M"
    """Writes that a node keeps for others that have missed them."""
    provider: Mapping[str, str] = field(
        default_factory=lambda: dict(WAN_PROVIDER_OPTIONS)
    )
    """More options of Galera."""

    @classmethod
    def read(cls, lab: Path) -> "ClusterOptions":
        """Return the settings of the cluster that runs; raises LabError without one."""
        try:
            return cls(**json.loads((lab / FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            message = f"No cluster runs in {lab}. Run `keylag lab galera-wan up`."
            raise LabError(message) from error

    def write(self, lab: Path) -> None:
        """Keep the settings of a cluster that runs; raises OSError."""
        write_output(lab / FILE, json.dumps(asdict(self), indent=2))

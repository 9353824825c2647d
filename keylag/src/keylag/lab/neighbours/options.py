"""The settings of Keystone and of its neighbours."""

from dataclasses import dataclass
from typing import ClassVar, Final

from keylag.lab.saved_options import SavedOptions

UNLIMITED: Final = 0


@dataclass(frozen=True)
class NeighbourOptions(SavedOptions):
    """How many tenants there are, what each has and sends, and what a log-in costs."""

    FILE: ClassVar = "neighbours.json"
    LABORATORY: ClassVar = "neighbours"
    NOTHING: ClassVar = "No Keystone"

    tenants: int = 1
    rate_per_second: int = 500
    """Operations of each tenant; UNLIMITED: as many as its threads can send."""
    records: int = 100_000
    """Rows of each tenant, of 1 kB each, as YCSB's core workloads have them."""
    password_hash_rounds: int = 12
    """Of Keystone's bcrypt; each one more doubles the time of a hash."""
    monitored: bool = True
    """Whether the Collector, Prometheus, the exporters and Grafana run, too."""

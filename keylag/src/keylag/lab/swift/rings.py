"""Swift's rings: which device keeps which replica."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from keylag.lab.iproute import run
from keylag.lab.network import Network
from keylag.lab.swift.devices import NAME

PORTS: Final[Mapping[str, int]] = {"object": 6200, "container": 6201, "account": 6202}
"""Of the servers of a storage node."""
PART_POWER: Final = 8
REPLICAS: Final = 3
MIN_PART_HOURS: Final = 0
WEIGHT: Final = 100


def build_rings(builder: Path, folder: Path, network: Network, regions: int) -> None:
    """Write the rings over the storage nodes of the first regions to a folder.

    `builder` is the program swift-ring-builder.  Raises LabError.
    """
    for kind, port in PORTS.items():
        file = str(folder / f"{kind}.builder")
        numbers = map(str, (PART_POWER, REPLICAS, MIN_PART_HOURS))
        run(str(builder), file, "create", *numbers)
        run(str(builder), file, "add", *_devices(network, regions, port))
        run(str(builder), file, "rebalance")


def _devices(network: Network, regions: int, port: int) -> Iterator[str]:
    """Yield each device and its weight; each node is a zone."""
    for region, site in enumerate(network.sites[:regions], start=1):
        for zone, host in enumerate(site.hosts, start=1):
            yield f"r{region}z{zone}-{host.address}:{port}/{NAME}"
            yield str(WEIGHT)

"""The settings of Swift that an experiment compares."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from keylag.lab.saved_options import SavedOptions

NEAR: Final = "near"
FAR: Final = "far"
SHARED: Final = "shared"
OWN: Final = "own"
NO_CACHE: Final = "none"
TOKEN_CACHES: Final = (SHARED, OWN, NO_CACHE)


@dataclass(frozen=True)
class SwiftOptions(SavedOptions):
    """Settings of the rings and of both proxy servers."""

    FILE: ClassVar = "swift.json"
    LABORATORY: ClassVar = "swift-regions"
    NOTHING: ClassVar = "No Swift"

    regions: int = 2
    """1 if objects belong to the first region only."""
    affinity: bool = True
    """Whether a proxy reads from, and first writes to, its own region."""
    keystone: str = NEAR
    """`near` if the second region has a Keystone; else its proxy asks the first."""
    token_cache: str = SHARED
    """Where auth_token keeps validated tokens: in the region's memcached, in the memory
    of each process of the proxy server, or nowhere."""
    cached_seconds: int = 300
    """How long it keeps them (`token_cache_time`)."""
    proxy_processes: int = 1
    """Processes of each proxy server (`workers`)."""
    container_update_seconds: float = 1.0
    """How long an object server waits for the updates of the container, before it
    answers a PUT or a DELETE (`container_update_timeout`)."""


SETS: Final[Mapping[str, SwiftOptions]] = {
    "set1": SwiftOptions(regions=1, affinity=False),
    "set2": SwiftOptions(affinity=False),
    "set3": SwiftOptions(),
}
"""The sets of the article on Swift's global cluster."""

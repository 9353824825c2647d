"""The settings of Swift that an experiment compares."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from keylag.lab.iproute import LabError
from keylag.state import write_output

FILE: Final = "swift.json"
"""In the folder of a laboratory that runs."""
NEAR: Final = "near"
FAR: Final = "far"
NOT_CACHED: Final = -1


@dataclass(frozen=True)
class SwiftOptions:
    """Settings of the rings and of both proxy servers."""

    regions: int = 2
    """1 if objects belong to the first region only."""
    affinity: bool = True
    """Whether a proxy reads from, and first writes to, its own region."""
    keystone: str = NEAR
    """`near` if the second region has a Keystone; else its proxy asks the first."""
    cached_seconds: int = 300
    """How long auth_token keeps a validated token in the region's memcached
    (`token_cache_time`); NOT_CACHED: not at all."""

    @classmethod
    def read(cls, lab: Path) -> "SwiftOptions":
        """Return the settings of the Swift that runs; raises LabError if none does."""
        try:
            return cls(**json.loads((lab / FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            message = f"No Swift runs in {lab}. Run `keylag lab swift-regions up`."
            raise LabError(message) from error

    def write(self, lab: Path) -> None:
        """Keep the settings of a Swift that runs; raises OSError."""
        write_output(lab / FILE, json.dumps(asdict(self), indent=2))


SETS: Final[Mapping[str, SwiftOptions]] = {
    "set1": SwiftOptions(regions=1, affinity=False),
    "set2": SwiftOptions(affinity=False),
    "set3": SwiftOptions(),
}
"""The sets of the article on Swift's global cluster."""

"""Why look-ups of memoized functions miss, by region of the cache."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from keylag.diagnosis.facts import Facts, ratio

FLUSHED_BY_LOGOUTS: Final = ("tokens", "revoke")
"""Regions that each log-out empties; a miss in them costs next to nothing."""
MOST: Final = 0.5
"""Share of a region's misses that are not stored, if its section does not cache."""
FEW: Final = 0.1
"""Share of all misses below which those of other regions cost nothing."""


@dataclass(frozen=True)
class CacheMisses:
    """Misses per second by region, and what happened to those regions."""

    misses: Mapping[str, float]
    sets: Mapping[str, float]
    """Stored values per second; empty if unknown."""
    invalidations: Mapping[str, float]

    @classmethod
    def of(cls, facts: Facts) -> "CacheMisses":
        """Return those of a window; all are empty if unknown."""
        misses = {
            one.labels.get("keystone_cache_region", ""): one.value
            for one in (facts.samples("memoized") if facts.has("memoized") else ())
            if one.labels["keystone_cache_result"] == "miss" and one.value
        }
        sets, invalidations = (
            facts.by(name, "keystone_cache_region") if facts.has(name) else {}
            for name in ("cache_sets", "invalidations")
        )
        return cls(misses, sets, invalidations)

    @cached_property
    def unstored(self) -> dict[str, float]:
        """The share of a region's misses that are not stored, if that are most."""
        if not self.sets:
            return {}
        shares = {
            region: 1 - ratio(self.sets.get(region, 0.0), missed)
            for region, missed in self.misses.items()
        }
        return {region: share for region, share in shares.items() if share >= MOST}

    @property
    def unstored_share(self) -> float:
        """Share of the misses that cost time: of regions that are not stored."""
        return self._share(self.unstored)

    @property
    def flushed_share(self) -> float:
        """Share of the misses that cost time: of regions that were invalidated."""
        return self._share(
            region
            for region, times in self.invalidations.items()
            if times and region not in self.unstored
        )

    @property
    def lost_share(self) -> float:
        """Share of the misses that cost time: of regions that nothing empties."""
        if not self.cost_time:
            return 0.0
        return max(1 - self.unstored_share - self.flushed_share, 0.0)

    @property
    def cost_time(self) -> bool:
        """Whether regions miss that log-outs do not empty."""
        return bool(self._costly)

    @cached_property
    def _costly(self) -> dict[str, float]:
        """Misses of regions that log-outs do not empty, if they are not few."""
        found = {
            region: missed
            for region, missed in self.misses.items()
            if region not in FLUSHED_BY_LOGOUTS or region in self.unstored
        }
        few = FEW * math.fsum(self.misses.values())
        return found if math.fsum(found.values()) > few else {}

    def _share(self, regions: Iterable[str]) -> float:
        of_these = math.fsum(self._costly.get(region, 0.0) for region in regions)
        return ratio(of_these, math.fsum(self._costly.values()))

"""A fake executor of the benchmark that computes its results."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from keylag_bench.raw_results import TurnResult

COST = {
    "bare": 1.0,
    "bare_again": 1.0,
    "keylag": 1.01,
    "keylag_export_5": 1.01,
    "keylag_python": 1.1,
    "otel": 1.2,
}
"""CPU seconds of a request by arm; wall time is twice as long."""
OFFSETS = (0.001, -0.001, 0.0)
"""Seconds added to each request of all arms but bare, by restart."""
EXPORT_CPU_SECONDS = 0.25
SPANS = {"otel": 7}
CACHE_CALLS = 3


@dataclass
class FakeExecutor:
    """Records its calls and returns computed results."""

    log: list[tuple[object, ...]] = field(default_factory=list)
    spans: dict[str, int] = field(default_factory=dict)
    request_cache_calls: int = 0
    starts: Counter[str] = field(default_factory=Counter)
    """Starts by cache."""
    offset: float = 0.0
    export_every: int = 0
    """Turns of `keylag_export_5` between two exports; 0 for no exports."""
    turns: int = 0
    """Turns of `keylag_export_5` so far."""
    fail_after: int | None = None
    """Calls until KeyboardInterrupt."""

    def start(self, cache: str, arms: Sequence[str], hash_seed: int) -> None:
        """Record a start."""
        self.log.append(("start", cache, tuple(sorted(arms)), hash_seed))
        self.spans = dict.fromkeys(arms, 0)
        self.offset = OFFSETS[self.starts[cache] % len(OFFSETS)]
        self.starts[cache] += 1

    def run(
        self,
        arm: str,
        call: str,
        requests: int,
        *,
        flush: bool = False,  # noqa: ARG002
    ) -> TurnResult:
        """Return the cost of the arm times the requests."""
        if self.fail_after is not None and self.fail_after == len(self.calls()):
            raise KeyboardInterrupt
        self.log.append(("run", arm, call, requests))
        self.request_cache_calls += CACHE_CALLS * requests
        self.spans[arm] += SPANS.get(arm, 0) * requests
        offset = self.offset if arm != "bare" else 0.0
        seconds = (COST[arm] + offset) * requests
        exports = self._exports(arm)
        return TurnResult(
            cpu_seconds=seconds + exports * EXPORT_CPU_SECONDS,
            wall_seconds=2 * seconds,
            spans=self.spans[arm],
            exports=exports,
            export_cpu_seconds=exports * EXPORT_CPU_SECONDS,
        )

    def _exports(self, arm: str) -> int:
        if arm != "keylag_export_5" or not self.export_every:
            return 0
        self.turns += 1
        return int(self.turns % self.export_every == 0)

    def collect_garbage(self, arm: str) -> None:
        """Record a garbage collection."""
        self.log.append(("collect_garbage", arm))

    def cache_calls(self) -> int:
        """Return the cache calls of all requests so far."""
        return self.request_cache_calls

    def stop(self) -> None:
        """Record a stop."""
        self.log.append(("stop",))

    def calls(self) -> list[tuple[object, ...]]:
        """Return the arguments of all runs."""
        return [entry[1:] for entry in self.log if entry[0] == "run"]

"""An executor whose answers are computed from what it is asked."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from keylag_bench.rows import Sample

COST = {"bare": 1.0, "bare_again": 1.0, "keylag": 1.01, "otel": 1.2}
"""Seconds of one request by arm; wall time is twice that."""
SPANS = {"otel": 7}
CACHE_CALLS = 3


@dataclass
class FakeExecutor:
    """Writes down its orders and answers by the tables above."""

    log: list[tuple[object, ...]] = field(default_factory=list)
    spans: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    fail_after: int | None = None
    """Blocks until it is interrupted."""

    def start(self, cache: str, arms: Sequence[str], hash_seed: int) -> None:
        """Write down a start."""
        self.log.append(("start", cache, tuple(sorted(arms)), hash_seed))
        self.spans = dict.fromkeys(arms, 0)

    def run(
        self,
        arm: str,
        call: str,
        requests: int,
        *,
        flush: bool = False,  # noqa: ARG002
    ) -> Sample:
        """Answer with the arm's cost times the requests."""
        if self.fail_after == len(self.blocks()):
            raise KeyboardInterrupt
        self.log.append(("run", arm, call, requests))
        self.calls += CACHE_CALLS * requests
        self.spans[arm] += SPANS.get(arm, 0) * requests
        seconds = COST[arm] * requests
        return Sample(seconds, 2 * seconds, self.spans[arm])

    def tidy(self, arm: str) -> None:
        """Write down that an arm is to collect its garbage."""
        self.log.append(("tidy", arm))

    def cache_calls(self) -> int:
        """Return the calls of all requests."""
        return self.calls

    def stop(self) -> None:
        """Write down a stop."""
        self.log.append(("stop",))

    def blocks(self) -> list[tuple[object, ...]]:
        """Return the runs alone."""
        return [entry[1:] for entry in self.log if entry[0] == "run"]

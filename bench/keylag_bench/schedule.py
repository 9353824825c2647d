"""The order of a measurement: what runs when, all of it from one seed.

In each restart, for each cache in random order: a fresh process per arm, some calls
of every workload that do not count, then the rounds.  A round runs every workload
in random order, and in each the arms take turns of some 50 ms, in random order again.
Before a round each arm collects its garbage: a full collection takes as long as some
requests, and comes once in hundreds, so that it would be one round's or another's.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Protocol, TypeVar

from keylag_bench.arms_and_workloads import Workload
from keylag_bench.raw_results import CallCounts, Row, TurnResult, WriteRow

COUNTED_REQUESTS = 5
WARM_UP_REQUESTS = 20
_HASH_SEEDS = 2**32

T = TypeVar("T")


class Executor(Protocol):
    """Runs rounds; the real one has processes, a test's computes its answers."""

    def start(self, cache: str, arms: Sequence[str], hash_seed: int) -> None:
        """Start a fresh process per arm.

        All have one hash seed, so that the layout of dictionaries differs from
        restart to restart and not from arm to arm.
        """

    def run(
        self, arm: str, call: str, requests: int, *, flush: bool = False
    ) -> TurnResult:
        """Run one round; `flush` has what waits to be exported sent in it."""

    def collect_garbage(self, arm: str) -> None:
        """Have an arm collect all its garbage, and charge nobody for it."""

    def cache_calls(self) -> int:
        """Return how many calls the caches have had so far."""

    def stop(self) -> None:
        """End the processes."""


@dataclass(frozen=True)
class Plan:
    """What is measured, how often."""

    workloads: Sequence[Workload]
    arms: Sequence[str]
    restarts: int
    rounds: int
    seed: int

    def with_requests(self, requests: int | None) -> "Plan":
        """Return a plan with so many requests in every round; None changes nothing."""
        workloads = [
            replace(workload, requests=requests or workload.requests)
            for workload in self.workloads
        ]
        return replace(self, workloads=workloads)

    def with_size(self, size: int) -> "Plan":
        """Return a plan of `size` restarts and rounds."""
        return replace(self, restarts=size, rounds=size)

    @property
    def caches(self) -> list[str]:
        """The caches in use, each once."""
        return list(dict.fromkeys(workload.cache for workload in self.workloads))

    def workloads_with(self, cache: str) -> list[Workload]:
        """Return the workloads of a cache."""
        return [workload for workload in self.workloads if workload.cache == cache]


@dataclass(frozen=True)
class Schedule:
    """One measurement under way."""

    plan: Plan
    executor: Executor
    write_row: WriteRow
    on_counts: Callable[[CallCounts], None]
    on_process_set: Callable[[int, int, str], None]
    """Told before each set of processes: which, of how many, on which cache."""

    def run(self) -> None:
        """Run all of it."""
        rng = Random(self.plan.seed)
        for number, (restart, cache) in enumerate(_process_sets(self.plan, rng)):
            self.on_process_set(
                number, self.plan.restarts * len(self.plan.caches), cache
            )
            try:
                arms = shuffled(rng, self.plan.arms)
                self.executor.start(cache, arms, rng.randrange(1, _HASH_SEEDS))
                self._run_process_set(restart, self.plan.workloads_with(cache), rng)
            finally:
                self.executor.stop()

    def _run_process_set(
        self, restart: int, workloads: Sequence[Workload], rng: Random
    ) -> None:
        for workload, arm in product(workloads, self.plan.arms):
            self.executor.run(arm, workload.call, WARM_UP_REQUESTS)
            if restart == 0:
                self.on_counts(self._count_calls(workload, arm))
        for round_number in range(self.plan.rounds):
            for workload in shuffled(rng, workloads):
                self._run_round(restart, round_number, workload, rng)

    def _run_round(
        self, restart: int, round_number: int, workload: Workload, rng: Random
    ) -> None:
        for arm in self.plan.arms:
            self.executor.collect_garbage(arm)
        results: dict[str, list[TurnResult]] = {arm: [] for arm in self.plan.arms}
        turn_count = -(-workload.requests // workload.turn)
        for _ in range(turn_count):
            for arm in shuffled(rng, self.plan.arms):
                result = self.executor.run(arm, workload.call, workload.turn)
                results[arm].append(result)
        for arm, turn_results in results.items():
            self.write_row(
                Row(
                    workload=workload.name,
                    restart=restart,
                    round=round_number,
                    arm=arm,
                    requests=turn_count * workload.turn,
                    cpu_seconds=sum(result.cpu_seconds for result in turn_results),
                    wall_seconds=sum(result.wall_seconds for result in turn_results),
                    exports=sum(result.exports for result in turn_results),
                    export_cpu_seconds=sum(s.export_cpu_seconds for s in turn_results),
                )
            )

    def _count_calls(self, workload: Workload, arm: str) -> CallCounts:
        """Count what a few requests make; a first one says where counting starts."""
        before = self.executor.run(arm, workload.call, 1, flush=True)
        calls = self.executor.cache_calls()
        after = self.executor.run(arm, workload.call, COUNTED_REQUESTS, flush=True)
        return CallCounts(
            workload=workload.name,
            arm=arm,
            spans=(after.spans - before.spans) / COUNTED_REQUESTS,
            cache_calls=(self.executor.cache_calls() - calls) / COUNTED_REQUESTS,
        )


def _process_sets(plan: Plan, rng: Random) -> Iterator[tuple[int, str]]:
    """Yield (restart, cache): every cache once before any has its next restart."""
    for restart in range(plan.restarts):
        for cache in shuffled(rng, plan.caches):
            yield restart, cache


def shuffled(rng: Random, items: Sequence[T]) -> list[T]:
    """Return them in random order."""
    return rng.sample(items, len(items))

"""Run a measurement in the random order that one seed decides.

Each restart starts, for each cache in random order, a new process per arm.  After a
warm-up of every workload come the rounds.  A round runs every workload in random order,
and within a workload the arms take turns of about 50 ms, again in random order.

Before each round, every arm makes a full garbage collection.  It takes as long as
several requests and happens once in hundreds, so its cost would fall on random rounds.
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
    """Makes the calls of the arms."""

    def start(self, cache: str, arms: Sequence[str], hash_seed: int) -> None:
        """Start a new process per arm.

        All have the same hash seed: the layout of dictionaries varies between
        restarts, but not between arms.
        """

    def run(
        self, arm: str, call: str, requests: int, *, flush: bool = False
    ) -> TurnResult:
        """Make calls in one turn of an arm; `flush` also exports pending data."""

    def collect_garbage(self, arm: str) -> None:
        """Make a full garbage collection in an arm, outside the measurement."""

    def cache_calls(self) -> int:
        """Return the number of calls that the caches have received so far."""

    def stop(self) -> None:
        """Stop the processes."""


@dataclass(frozen=True)
class Plan:
    """The workloads and arms, and how often each is measured."""

    workloads: Sequence[Workload]
    arms: Sequence[str]
    restarts: int
    rounds: int
    seed: int

    def with_requests(self, requests: int | None) -> "Plan":
        """Return the plan with `requests` per round; None keeps the present number."""
        workloads = [
            replace(workload, requests=requests or workload.requests)
            for workload in self.workloads
        ]
        return replace(self, workloads=workloads)

    def with_size(self, size: int) -> "Plan":
        """Return the plan with `size` restarts of `size` rounds."""
        return replace(self, restarts=size, rounds=size)

    @property
    def caches(self) -> list[str]:
        """The caches of all workloads, without duplicates."""
        return list(dict.fromkeys(workload.cache for workload in self.workloads))

    def workloads_with(self, cache: str) -> list[Workload]:
        """Return the workloads with a cache."""
        return [workload for workload in self.workloads if workload.cache == cache]


@dataclass(frozen=True)
class Schedule:
    """Runs a plan with an executor."""

    plan: Plan
    executor: Executor
    write_row: WriteRow
    on_counts: Callable[[CallCounts], None]
    on_process_set: Callable[[int, int, str], None]
    """Called before each set of processes: its number, their total, the cache."""

    def run(self) -> None:
        """Run the whole plan."""
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
        # Spans are counted from the flush of a first request on.
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
    for restart in range(plan.restarts):
        for cache in shuffled(rng, plan.caches):
            yield restart, cache


def shuffled(rng: Random, items: Sequence[T]) -> list[T]:
    """Return the items in random order."""
    return rng.sample(items, len(items))

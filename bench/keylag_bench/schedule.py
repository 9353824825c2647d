"""The order of a measurement: what runs when, all of it from one seed.

In each restart, for each cache in random order: a fresh process per arm, some calls
of every workload that do not count, then the blocks.  A block runs every workload
in random order, and in each the arms take turns of some 50 ms, in random order again.
Before a block each arm collects its garbage: a full collection takes as long as some
requests, and comes once in hundreds, so that it would be one block's or another's.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Protocol, TypeVar

from keylag_bench.rows import Counted, Keep, Row, Sample
from keylag_bench.tables import Workload

COUNTED_REQUESTS = 5
WARM_UP_REQUESTS = 20
_HASH_SEEDS = 2**32

T = TypeVar("T")


class Executor(Protocol):
    """Runs blocks; the real one has processes, a test's computes its answers."""

    def start(self, cache: str, arms: Sequence[str], hash_seed: int) -> None:
        """Start a fresh process per arm.

        All have one hash seed, so that the layout of dictionaries differs from
        restart to restart and not from arm to arm.
        """

    def run(self, arm: str, call: str, requests: int, *, flush: bool = False) -> Sample:
        """Run one block; `flush` has what waits to be exported sent in it."""

    def tidy(self, arm: str) -> None:
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
    blocks: int
    seed: int

    def with_requests(self, requests: int | None) -> "Plan":
        """Return a plan with so many requests in every block; None changes nothing."""
        workloads = [
            replace(workload, requests=requests or workload.requests)
            for workload in self.workloads
        ]
        return replace(self, workloads=workloads)

    def shortened(self, size: int) -> "Plan":
        """Return a plan of `size` restarts and blocks."""
        return replace(self, restarts=size, blocks=size)

    @property
    def caches(self) -> list[str]:
        """The caches in use, each once."""
        return list(dict.fromkeys(workload.cache for workload in self.workloads))

    def on(self, cache: str) -> list[Workload]:
        """Return the workloads of a cache."""
        return [workload for workload in self.workloads if workload.cache == cache]


@dataclass(frozen=True)
class Schedule:
    """One measurement under way."""

    plan: Plan
    executor: Executor
    keep: Keep
    count: Callable[[Counted], None]
    step: Callable[[int, int, str], None]
    """Told before each set of processes: which, of how many, on which cache."""

    def run(self) -> None:
        """Run all of it."""
        choice = Random(self.plan.seed)
        for number, (restart, cache) in enumerate(_sets(self.plan, choice)):
            self.step(number, self.plan.restarts * len(self.plan.caches), cache)
            try:
                arms = shuffled(choice, self.plan.arms)
                self.executor.start(cache, arms, choice.randrange(1, _HASH_SEEDS))
                self._one_set(restart, self.plan.on(cache), choice)
            finally:
                self.executor.stop()

    def _one_set(
        self, restart: int, workloads: Sequence[Workload], choice: Random
    ) -> None:
        for workload, arm in product(workloads, self.plan.arms):
            self.executor.run(arm, workload.call, WARM_UP_REQUESTS)
            if restart == 0:
                self.count(self._counted(workload, arm))
        for block in range(self.plan.blocks):
            for workload in shuffled(choice, workloads):
                self._one_block(restart, block, workload, choice)

    def _one_block(
        self, restart: int, block: int, workload: Workload, choice: Random
    ) -> None:
        for arm in self.plan.arms:
            self.executor.tidy(arm)
        samples: dict[str, list[Sample]] = {arm: [] for arm in self.plan.arms}
        turns = -(-workload.requests // workload.turn)
        for _ in range(turns):
            for arm in shuffled(choice, self.plan.arms):
                sample = self.executor.run(arm, workload.call, workload.turn)
                samples[arm].append(sample)
        for arm, turn in samples.items():
            self.keep(
                Row(
                    workload=workload.name,
                    restart=restart,
                    block=block,
                    arm=arm,
                    requests=turns * workload.turn,
                    cpu_seconds=sum(sample.cpu_seconds for sample in turn),
                    wall_seconds=sum(sample.wall_seconds for sample in turn),
                    exports=sum(sample.exports for sample in turn),
                    export_cpu_seconds=sum(s.export_cpu_seconds for s in turn),
                )
            )

    def _counted(self, workload: Workload, arm: str) -> Counted:
        """Count what a few requests make; a first one says where counting starts."""
        before = self.executor.run(arm, workload.call, 1, flush=True)
        calls = self.executor.cache_calls()
        after = self.executor.run(arm, workload.call, COUNTED_REQUESTS, flush=True)
        return Counted(
            workload=workload.name,
            arm=arm,
            spans=(after.spans - before.spans) / COUNTED_REQUESTS,
            cache_calls=(self.executor.cache_calls() - calls) / COUNTED_REQUESTS,
        )


def _sets(plan: Plan, choice: Random) -> Iterator[tuple[int, str]]:
    """Yield (restart, cache): every cache once before any has its next restart."""
    for restart in range(plan.restarts):
        for cache in shuffled(choice, plan.caches):
            yield restart, cache


def shuffled(choice: Random, items: Sequence[T]) -> list[T]:
    """Return them in random order."""
    return choice.sample(items, len(items))

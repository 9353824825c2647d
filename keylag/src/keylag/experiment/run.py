"""The run: block after block, until the answer is clear or the time is over."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from keylag.experiment.analysis import Comparison, compare
from keylag.experiment.journal import INTERRUPTED, RUNNING, Folder, Journal
from keylag.experiment.plan import Plan
from keylag.experiment.samples import Row
from keylag.experiment.schedule import Block, blocks
from keylag.experiment.verdicts import CANNOT_TELL
from keylag.launcher import StackError
from keylag.tools import ToolError

FAILED_IN_A_ROW: Final = 3
"""Blocks without a good request of an arm, after which it is not tried again."""
CLEAR: Final = "the answer is clear"
TIME_OVER: Final = "the time is over"
NOTHING_LEFT: Final = "of what is compared, nothing answers as asked"
COULD_NOT_GO_ON: Final = "it could not go on"
BLOCKS_DONE: Final = "all blocks are done"


@dataclass(frozen=True)
class Sent:
    """What an arm brought in a block; `notes` say what went wrong."""

    rows: list[Row]
    notes: Sequence[str] = ()


class Executor(Protocol):
    """Runs blocks; the real one has stacks, a test's computes its answers."""

    def start(self) -> None:
        """Start all arms from their prepared states; StackError if one does not."""

    def renew(self, block: Block) -> None:
        """Give all arms a fresh Keystone before this block; StackError as above."""

    def send(self, block: Block, out: Path) -> Mapping[str, Sent]:
        """Load the block's arms; `out` is a folder for JMeter's files."""

    def stop(self) -> None:
        """Stop all arms."""


@dataclass
class Run:
    """One run under way, new or gone on with."""

    plan: Plan
    folder: Folder
    executor: Executor
    report: "Callable[[Run], None]"
    """Told after each block."""
    clock: Callable[[], float] = time.monotonic
    journal: Journal = field(init=False)
    rows: list[Row] = field(init=False)
    _failed: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.journal = self.folder.load()
        self.folder.cut(self.journal)
        self.rows = self.folder.rows()

    @property
    def comparisons(self) -> list[Comparison]:
        """What the blocks so far say about what the plan decides by."""
        decision = self.plan.decision
        found = compare(self.rows, self.plan.base, self.plan.others, decision)
        return [one for one in found if one.method == decision.method]

    def go(self) -> None:
        """Run to an end; whatever that is, it is written down and the arms stopped."""
        self.journal.ended = RUNNING
        try:
            self.executor.start()
            self.journal.ended = self._blocks()
        except KeyboardInterrupt:
            self.journal.ended = INTERRUPTED
        except (StackError, ToolError, OSError) as error:
            self.journal.events.append(str(error))
            self.journal.ended = COULD_NOT_GO_ON
        finally:
            self._stop()
            self.folder.save(self.journal)

    def _stop(self) -> None:
        try:
            self.executor.stop()
        except StackError as error:
            self.journal.events.append(str(error))

    def _blocks(self) -> str:
        """Run blocks and return why there are no more."""
        begun = self.clock() - self.journal.seconds
        order = blocks(self.plan.order, self.journal.seed)
        for block in islice(order, self.journal.blocks, self.plan.design.blocks):
            if reason := self._over():
                return reason
            self._block(block, begun)
            if not self._can_compare():
                return NOTHING_LEFT
        return self._over() or BLOCKS_DONE

    @property
    def _tried(self) -> list[str]:
        """The arms that are not given up."""
        failed = self._failed
        return [arm for arm in self.plan.order if failed[arm] < FAILED_IN_A_ROW]

    def _can_compare(self) -> bool:
        """Tell whether the base, and something to compare with it, is still tried."""
        tried = self._tried
        return tried == self.plan.order or (self.plan.base in tried and len(tried) > 1)

    def _block(self, block: Block, begun: float) -> None:
        tried = [arm for arm in block.arms if arm in self._tried]
        self.executor.renew(block)
        brought = self.executor.send(
            replace(block, arms=tried), self.folder.path / "jmeter"
        )
        rows: list[Row] = []
        for arm in tried:
            self.journal.note(block.number, arm, brought[arm].notes)
            self._count(block, arm, brought[arm].rows)
            rows += brought[arm].rows
        self.journal.seconds = self.clock() - begun
        self.folder.add(self.journal, rows)
        self.rows += rows
        self.report(self)

    def _count(self, block: Block, arm: str, rows: Sequence[Row]) -> None:
        """Give an arm up that has failed too often."""
        good = any(row.success for row in rows)
        self._failed[arm] = 0 if good else self._failed[arm] + 1
        if arm not in self._tried:
            times = f"{FAILED_IN_A_ROW} times in a row"
            text = f"it answered nothing as asked {times} and is not tried again"
            self.journal.note(block.number, arm, [text])

    def _over(self) -> str | None:
        """Say why no other block should begin; None if one should."""
        if not self.journal.blocks:
            return None
        if self.is_clear():
            return CLEAR
        block = self.journal.seconds / self.journal.blocks
        left = self.plan.design.minutes * 60 - self.journal.seconds
        return TIME_OVER if left < block else None

    def is_clear(self) -> bool:
        """Tell whether every arm that is still tried has its verdict."""
        measure = self.plan.decision.measure
        compared = {one.arm: one.measures.get(measure) for one in self.comparisons}
        found = [compared.get(arm) for arm in self._tried if arm != self.plan.base]
        return bool(found) and all(one and one.verdict != CANNOT_TELL for one in found)

"""An executor whose answers are computed from what it is asked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from keylag.experiment.run import Run, Sent
from keylag.experiment.samples import Row
from keylag.experiment.schedule import Turn
from keylag.phases import BLOCKS

PLAN = """\
question = "Is <b> faster?"
base = "a"
[load]
plan = "token-validate"
[design]
blocks = {blocks}
minutes = 60
warm_up_seconds = 1
turn_seconds = 2
[decision]
method = "GET"
smallest = 0.02
[arms.a]
[arms.b]
[arms.c]
"""
ENVIRONMENT = {"busy_before": 0.1, "arms": {"a": {}}}
MILLISECONDS = {"a": 100, "b": 90, "c": 100}
REQUESTS = 12


def rows(turn: Turn, code: str = "200") -> list[Row]:
    """Return requests by the table above, a little different from block to block."""
    base = MILLISECONDS[turn.arm] + turn.block * ord(turn.arm) % 3 + turn.block % 5
    parts = dict.fromkeys(BLOCKS, 0.0) | {"sql": (base - 20) / 1000, "cache": 0.005}
    counts = {"sql_statements": 6.0, "cache_calls": 14.0}
    measured = {"total": base / 1000, **parts, **counts} if code == "200" else {}
    return [
        Row(
            block=turn.block,
            position=turn.position,
            arm=turn.arm,
            start_seconds=1000.0 + number / 10,
            method="GET",
            code=code,
            success=code == "200",
            warm_up=number < 2,
            latency_seconds=round(base) / 1000,
            measured=measured,
        )
        for number in range(REQUESTS)
    ]


@dataclass
class Fake:
    """Writes down its orders; `wrong` may do something else in some turns."""

    log: list[object] = field(default_factory=list)
    wrong: Callable[[Turn], Sent | None] = lambda _turn: None

    def start(self) -> None:
        """Write down a start."""
        self.log.append("start")

    def renew(self, turn: Turn) -> None:
        """Write down a fresh start of all Keystones."""
        self.log.append(turn.hash_seed)

    def send(self, turn: Turn, out: Path) -> Sent:  # noqa: ARG002 - nothing to leave
        """Answer by the table."""
        self.log.append(turn.arm)
        return self.wrong(turn) or Sent(rows(turn))

    def stop(self) -> None:
        """Write down a stop."""
        self.log.append("stop")


MakeRun = Callable[..., Run]

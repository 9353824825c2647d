"""A fake executor of experiments that computes its responses."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from keylag.experiment.run import ArmResult, ExperimentRun
from keylag.experiment.samples import Row
from keylag.experiment.schedule import Round
from keylag.phases import CATEGORIES

PLAN = """\
question = "Is <b> faster?"
base = "a"
[load]
plan = "token-validate"
[design]
rounds = {rounds}
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


def fake_rows(this_round: Round, arm: str, code: str = "200") -> list[Row]:
    """Return requests with the latencies of MILLISECONDS, which vary by round."""
    number = this_round.number
    base = MILLISECONDS[arm] + number * ord(arm) % 3 + number % 5
    parts = dict.fromkeys(CATEGORIES, 0.0) | {"sql": (base - 20) / 1000, "cache": 0.005}
    counts = {"sql_statements": 6.0, "cache_calls": 14.0}
    measured = {"total": base / 1000, **parts, **counts} if code == "200" else {}
    return [
        Row(
            round=number,
            position=this_round.arms.index(arm),
            arm=arm,
            start_seconds=1000.0 + request / 10,
            method="GET",
            code=code,
            success=code == "200",
            warm_up=request < 2,
            latency_seconds=round(base) / 1000,
            server_timing=measured,
        )
        for request in range(REQUESTS)
    ]


@dataclass
class FakeExecutor:
    """Records its calls; `override` may return another result for some arms."""

    log: list[object] = field(default_factory=list)
    override: Callable[[Round, str], ArmResult | None] = lambda _round, _arm: None

    def start(self) -> None:
        """Record a start."""
        self.log.append("start")

    def begin_round(self, this_round: Round) -> None:
        """Record the hash seed of a round."""
        self.log.append(this_round.hash_seed)

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:  # noqa: ARG002
        """Return computed results, without any files."""
        return {arm: self._result(this_round, arm) for arm in this_round.arms}

    def _result(self, this_round: Round, arm: str) -> ArmResult:
        self.log.append(arm)
        return self.override(this_round, arm) or ArmResult(fake_rows(this_round, arm))

    def stop(self) -> None:
        """Record a stop."""
        self.log.append("stop")


MakeRun = Callable[..., ExperimentRun]

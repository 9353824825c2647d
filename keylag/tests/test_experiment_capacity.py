"""Capacity: the rule of the ramp, how a trial is judged, and what repeats say."""

import heapq
import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from fake_keystone import running
from test_experiment_interleaved_load import keystone_target

from keylag.cli import main
from keylag.experiment import plan_parser
from keylag.experiment.capacity import report
from keylag.experiment.capacity.open_load import (
    WARM_UP_SECONDS,
    OpenLoad,
    OverloadDetector,
    Trial,
    judge,
)
from keylag.experiment.capacity.ramp import MAX_RATE, MIN_RATE, STEP_RATIO, Ramp
from keylag.experiment.capacity.result import (
    CANNOT_TELL,
    LESS,
    MORE,
    NO_DIFFERENCE,
    compare_capacities,
)
from keylag.experiment.capacity.run import (
    DONE,
    NOTHING_TO_COMPARE,
    TIME_LIMIT_REACHED,
    CapacityRun,
    Settings,
)
from keylag.experiment.plan import Plan
from keylag.experiment.run_folder import INTERRUPTED
from keylag.experiment.schedule import Round
from keylag.jmeter_process import JMeterError
from keylag.jmeter_progress import Progress
from keylag.jtl import Sample
from keylag.load_target import LoadTarget

PLAN = """\
question = "Which arm holds more?"
base = "a"
[load]
plan = "token-issue"
properties = { threads = 1 }
[decision]
method = "POST"
[arms.a]
[arms.b]
"""


def queue_samples(
    rate: float, seconds: float, service: float, seed: int
) -> list[Sample]:
    """Return the samples of random arrivals at a queue with two workers."""
    rng = Random(seed)  # noqa: S311 - a simulation
    free = [0.0, 0.0]
    found = []
    for arrival in sorted(rng.uniform(0, seconds) for _ in range(int(rate * seconds))):
        start = max(arrival, heapq.heappop(free))
        heapq.heappush(free, start + service)
        found.append(sample(1000 + arrival, start + service - arrival))
    return found


def sample(arrival: float, seconds: float, *, success: bool = True) -> Sample:
    """Return a request that JMeter sent on arrival."""
    return Sample(
        arrival,
        seconds,
        seconds,
        0,
        "POST /v3/auth/tokens password",
        "201" if success else "500",
        "",
        "1",
        success=success,
        size_bytes=1,
        timing=None,
        arrival_seconds=arrival,
    )


def search(is_held: Callable[[float], bool], first_rate: float = 10.0) -> Ramp:
    """Return a finished ramp."""
    ramp = Ramp(first_rate)
    while (rate := ramp.next_rate) is not None:
        ramp.record(held=is_held(rate))
    return ramp


@pytest.mark.parametrize("capacity", [0.3, 4.0, 9.9, 10.0, 10.1, 12.0, 55.5, 900.0])
def test_ramp_ends_at_neighbouring_rates_around_the_capacity(capacity: float) -> None:
    ramp = search(lambda rate: rate <= capacity)

    assert ramp.held is not None
    assert ramp.not_held is not None
    assert ramp.held <= capacity < ramp.not_held
    assert ramp.not_held / ramp.held == pytest.approx(STEP_RATIO)


def test_ramp_tries_a_failed_rate_again_before_it_goes_down() -> None:
    ramp = Ramp(10.0)
    ramp.record(held=True)
    high = ramp.next_rate
    ramp.record(held=False)
    again = ramp.next_rate
    ramp.record(held=True)

    assert again == high == ramp.held
    assert ramp.not_held is None
    assert ramp.next_rate
    assert ramp.next_rate > high


def test_ramp_ends_beyond_the_lowest_and_the_highest_rate() -> None:
    nothing, everything = search(lambda _: False), search(lambda _: True)

    assert nothing.held is None
    assert everything.not_held is None
    assert nothing.not_held == pytest.approx(MIN_RATE, rel=0.05)
    assert everything.held == pytest.approx(MAX_RATE, rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_ramp_finds_the_capacity_of_a_queue(seed: int) -> None:
    """Two workers of 0.1 s serve 20 requests per second at most."""

    def is_held(rate: float) -> bool:
        return judge(rate, queue_samples(rate, 25, 0.1, seed), 1.0).held

    ramp = search(is_held, first_rate=13.0)

    assert ramp.held
    assert 18 < ramp.held < 22


def test_latency_counts_from_arrival_and_failures_are_slower_than_any() -> None:
    late = [sample(WARM_UP_SECONDS + n, 0.1) for n in range(96)]
    first = [sample(0, 9.0)]
    slow = [sample(200, 2.0)] * 4
    failed = [sample(200, 0.1, success=False)] * 2

    assert judge(1, [*first, *late, *slow], 1.0).held
    assert judge(1, [*first, *late, *slow], 1.0).p95_seconds == pytest.approx(0.1)
    assert judge(1, [*first, *late, *slow, *slow], 1.0).p95_seconds == pytest.approx(2)
    assert not judge(1, [*first, *late, *failed], 1.0).held
    assert judge(1, [*first, *late, *failed], 1.0).failed == 2
    assert judge(1, [*first, *late, *failed * 4], 1.0).p95_seconds == math.inf
    assert not judge(1, [], 1.0).held
    assert not judge(1, late, 1.0, "too many requests waited").held


def test_wait_for_a_virtual_user_is_part_of_the_latency() -> None:
    waited = replace(sample(12.0, 0.1), arrival_seconds=10.0)

    assert judge(1, [sample(0, 0.1), waited], 5.0).p95_seconds == pytest.approx(2.1)


@pytest.mark.parametrize(
    ("done", "errors", "reason"),
    [
        (140, 0, ""),
        (60, 0, "too many requests waited"),
        (150, 9, "too many requests failed"),
    ],
)
def test_hopeless_load_ends_early(done: int, errors: int, reason: str) -> None:
    """11 s after the warm-up, 100 of 150 requests arrived a second ago or earlier."""
    times = iter([0.0, 4.9, 16.0])
    overload = OverloadDetector(10, 15, 1.0, clock=lambda: next(times))

    assert not overload.is_hopeless(Progress(50, 0, None))
    assert overload.is_hopeless(Progress(done, errors, None)) == bool(reason)
    assert overload.reason == reason


def test_one_late_response_after_all_arrivals_ends_no_load() -> None:
    """All but one of 150 requests have ended, and the last one takes a minute."""
    times = iter([0.0, 4.9, *range(6, 80)])
    overload = OverloadDetector(10, 15, 1.0, clock=lambda: next(times))
    progress = [(50, 0), *[(199, 0)] * 74]

    assert not any(overload.is_hopeless(Progress(*one, None)) for one in progress)


def test_warm_up_ends_no_load() -> None:
    """All requests of the warm-up waited for 3 s, and then some of them failed."""
    times = iter([0.5, 0.5, 3.5, 4.9, 5.2, 8.0])
    overload = OverloadDetector(100, 10, 1.0, clock=lambda: next(times))
    progress = [(1, 0), (1, 0), (90, 0), (600, 400), (900, 400)]

    stops = [overload.is_hopeless(Progress(*one, None)) for one in progress]

    assert not any(stops), overload.reason


@dataclass
class FakeArms:
    """An executor and a load of arms with known capacities, in requests per second."""

    capacities: dict[str, float]
    log: list[object] = field(default_factory=list)
    on_trial: Callable[[str, float], None] = lambda _arm, _rate: None

    def start(self) -> None:
        """Record a start."""
        self.log.append("start")

    def begin_round(self, this_round: Round) -> None:
        """Record the order of a repeat."""
        self.log.append(tuple(this_round.arms))

    def serving(self, arm: str) -> nullcontext[LoadTarget]:
        """Record the arm under load."""
        self.log.append(arm)
        return nullcontext(LoadTarget({}))

    def stop(self) -> None:
        """Record a stop."""
        self.log.append("stop")

    def first_rate(self, arm: str, _target: LoadTarget, _out: Path) -> float:
        """Return half of the capacity; an arm without one fails."""
        if not self.capacities[arm]:
            message = "no request succeeded"
            raise JMeterError(message)
        return self.capacities[arm] / 2

    def try_rate(
        self, arm: str, _target: LoadTarget, rate: float, _seed: int, _out: Path
    ) -> Trial:
        """Hold rates up to the capacity."""
        self.on_trial(arm, rate)
        held = rate <= self.capacities[arm]
        return Trial(rate, 100, 0, 0.2 if held else math.inf, held=held)


def measure(
    arms: FakeArms, tmp_path: Path, settings: Settings | None = None, **more: object
) -> CapacityRun:
    """Return a finished measurement."""
    run = CapacityRun(
        make_plan(tmp_path),
        settings or Settings(),
        seed=1,
        executor=arms,
        load=arms,
        out=tmp_path,
        on_trial=lambda _run: None,
        **more,
    )
    run.execute()
    return run


def make_plan(tmp_path: Path) -> Plan:
    """Return a plan with two arms."""
    (tmp_path / "plan.toml").write_text(PLAN)
    return plan_parser.read_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize(
    ("capacity", "verdict"), [(130, MORE), (70, LESS), (101, NO_DIFFERENCE)]
)
def test_arm_is_compared_with_the_base_in_each_repeat(
    tmp_path: Path, capacity: float, verdict: str
) -> None:
    run = measure(FakeArms({"a": 100, "b": capacity}), tmp_path)
    base, arm = compare_capacities(run)

    assert run.ended == DONE
    assert [ramp.repeat for ramp in run.ramps] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert all(ramp.complete for ramp in run.ramps)
    assert (base.arm, base.verdict) == ("a", "base")
    assert arm.verdict == verdict
    assert arm.ratio
    assert arm.ratio.mean == pytest.approx(capacity / 100, rel=0.06)


def test_few_repeats_give_no_verdict(tmp_path: Path) -> None:
    run = measure(FakeArms({"a": 100, "b": 300}), tmp_path, Settings(repeats=3))

    assert compare_capacities(run)[1].verdict == CANNOT_TELL


def test_arms_whose_repeats_overlap_have_no_clear_difference(tmp_path: Path) -> None:
    """In each repeat b holds more than a, but less than a in another repeat."""
    arms = FakeArms({"a": 100, "b": 130})

    def drift(arm: str, _rate: float) -> None:
        repeat = sum(isinstance(entry, tuple) for entry in arms.log) - 1
        arms.capacities = {"a": 100 * 1.2**repeat, "b": 130 * 1.2**repeat}

    arms.on_trial = drift

    assert compare_capacities(measure(arms, tmp_path))[1].verdict == NO_DIFFERENCE


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    def interrupt(_arm: str, _rate: float) -> None:
        if len(run_ramps()) == 3:
            raise KeyboardInterrupt

    arms = FakeArms({"a": 100, "b": 100}, on_trial=interrupt)
    run_ramps = lambda: [entry for entry in arms.log if entry in {"a", "b"}]  # noqa: E731
    run = measure(arms, tmp_path)
    report.write_reports(run, {"arms": {"a": {}}}, tmp_path)

    assert run.ended == INTERRUPTED
    assert arms.log[-1] == "stop"
    assert [ramp.complete for ramp in run.ramps] == [True, True, False]
    assert "not finished" in (tmp_path / "report.md").read_text()
    assert json.loads((tmp_path / "result.json").read_text())["ended"] == INTERRUPTED


def test_arm_that_fails_is_reported_and_the_others_are_measured(tmp_path: Path) -> None:
    run = measure(FakeArms({"a": 100, "b": 0}), tmp_path)
    report.write_reports(run, {"arms": {}}, tmp_path)

    assert run.ended == NOTHING_TO_COMPARE
    assert compare_capacities(run)[0].held
    assert compare_capacities(run)[1].held is None
    text = (tmp_path / "report.md").read_text()
    assert "repeat 1, arm b: no request succeeded" in text


def test_problem_of_jmeter_is_no_lower_capacity(tmp_path: Path) -> None:
    def fail(arm: str, rate: float) -> None:
        if arm == "b" and rate > 60:
            message = "JMeter has no memory left"
            raise JMeterError(message)

    arms = FakeArms({"a": 100, "b": 100}, on_trial=fail)
    run = measure(arms, tmp_path, Settings(repeats=2))

    assert run.ended == DONE
    assert [ramp.not_held for ramp in run.ramps if ramp.arm == "b"] == [None, None]
    assert compare_capacities(run)[1].verdict == CANNOT_TELL
    assert run.events == [
        f"repeat {number}, arm b: JMeter has no memory left" for number in (1, 2)
    ]


@pytest.mark.parametrize(
    ("minutes", "ramps", "ended"),
    [(2, 1, NOTHING_TO_COMPARE), (4, 2, TIME_LIMIT_REACHED)],
)
def test_trial_that_would_exceed_the_time_limit_is_not_started(
    tmp_path: Path, minutes: float, ramps: int, ended: str
) -> None:
    """A trial takes 20 s, and a ramp about eight."""
    seconds = iter(range(0, 100_000, 20))
    run = measure(
        FakeArms({"a": 100, "b": 100}),
        tmp_path,
        Settings(minutes=minutes),
        clock=lambda: float(next(seconds)),
    )

    assert run.ended == ended
    assert len(run.ramps) == ramps
    assert run.ramps[-1].trials
    assert not run.ramps[-1].complete


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--minutes", "0.1"], "too short: the first trial ends after"),
        (["--repeats", "0"], "0 is not in the range"),
        (["--limit", "1s"], "not a valid float"),
    ],
)
def test_wrong_options_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(
        main, ["experiment", "capacity", "same", "--dry-run", *options]
    )

    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.stack
def test_requests_of_an_open_load_arrive_at_the_rate(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    with running() as keystone:
        target = keystone_target(keystone, tmp_path)
        load = OpenLoad(plan, seconds=4, limit_seconds=5.0)
        trial = load.try_rate("a", target, 20.0, 1, tmp_path / "jmeter")

    assert trial.held, trial
    assert 4 * 20 * 0.7 < trial.requests < 4 * 20 * 1.3

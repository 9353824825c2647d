"""Arms that have their verdict leave their time to the others."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from fake_experiment import FakeExecutor, MakeRun, fake_rows

from keylag.experiment import report, run
from keylag.experiment.plan import MIN_ROUNDS
from keylag.experiment.progress import describe_round
from keylag.experiment.result import analyse_run
from keylag.experiment.run import ArmResult, ExperimentRun
from keylag.experiment.run_folder import INTERRUPTED
from keylag.experiment.schedule import Round


def restless(this_round: Round, arm: str) -> ArmResult:
    """Return the results of arms of which c varies by 4 ms, and the others hardly."""
    more = [0.004, -0.004, 0.002, -0.002][this_round.number % 4] if arm == "c" else 0
    rows = fake_rows(this_round, arm)
    return ArmResult(
        [replace(row, latency_seconds=row.latency_seconds + more) for row in rows]
    )


def timed_run(
    make_run: MakeRun,
    minutes: float,
    result: Callable[[Round, str], ArmResult] = restless,
) -> tuple[ExperimentRun, FakeExecutor]:
    """Return a run in which each turn takes 10 s."""
    now = [0.0]

    def turn(this_round: Round, arm: str) -> ArmResult:
        now[0] += 10
        return result(this_round, arm)

    fake = FakeExecutor(override=turn)
    made = make_run("r", fake, rounds=100)
    made.plan = made.plan.with_minutes(minutes)
    made.state.planned_rounds = MIN_ROUNDS
    made.clock = lambda: now[0]
    return made, fake


def test_decided_arm_takes_no_more_turns_and_the_others_get_more_rounds(
    make_run: MakeRun,
) -> None:
    """Arm b is 10 % faster at two looks.  Ten rounds fit into five minutes."""
    run_under_test, fake = timed_run(make_run, 5)
    planned = {}
    run_under_test.on_round = lambda one: planned.update(
        {one.state.rounds: one.state.planned_rounds}
    )
    run_under_test.execute()
    state = run_under_test.state
    [b, c] = analyse_run(run_under_test.folder).comparisons

    assert state.decided_arms == ["b"]
    assert fake.log.count("b") == b.rounds == MIN_ROUNDS + 1
    assert b.measures["p50"].verdict == "faster"
    assert planned[MIN_ROUNDS + 1] == 10
    assert planned[MIN_ROUNDS + 2] == 12
    assert state.plan_changes == [(MIN_ROUNDS + 2, 10)]
    assert c.rounds == state.rounds > MIN_ROUNDS + 2


def test_interval_of_a_decided_arm_is_that_of_its_last_look(make_run: MakeRun) -> None:
    run_under_test, _ = timed_run(make_run, 5)
    widths = []

    def remember(one: ExperimentRun) -> None:
        b = next(found for found in one.comparisons if found.arm == "b")
        if one.state.rounds > MIN_ROUNDS:
            widths.append(b.measures["p50"].absolute)

    run_under_test.on_round = remember
    run_under_test.execute()
    [b, _] = analyse_run(run_under_test.folder).comparisons

    assert len(widths) > 2
    assert set(widths) == {b.measures["p50"].absolute}


def test_reports_and_progress_name_the_arms_that_left(make_run: MakeRun) -> None:
    run_under_test, _ = timed_run(make_run, 4)
    run_under_test.execute()
    report.write_reports(run_under_test.folder)
    path = run_under_test.folder.path
    content = json.loads((path / "result.json").read_text())
    sentence = "Arms with a verdict took no more turns: b after 6 rounds."

    progress = "\n".join(describe_round(run_under_test))
    assert "b: -9.7 % [-11.1, -8.4], faster" in progress
    assert sentence in progress
    assert sentence in (path / "report.md").read_text()
    assert sentence in (path / "report.html").read_text()
    for name in ("report.md", "report.html"):
        assert "An arm that left has fewer rounds" in (path / name).read_text()
    assert content["decided_arms"] == ["b"]
    assert content["plan_changes"] == [[MIN_ROUNDS + 2, 8]]


def test_decided_arm_stays_out_when_the_run_goes_on(make_run: MakeRun) -> None:
    def interrupt(this_round: Round, arm: str) -> ArmResult:
        if this_round.number == MIN_ROUNDS + 2:
            raise KeyboardInterrupt
        return restless(this_round, arm)

    first, _ = timed_run(make_run, 5, interrupt)
    first.execute()
    fake = FakeExecutor(override=restless)
    resumed = ExperimentRun(first.plan, first.folder, fake, lambda _: None)
    resumed.execute()

    assert first.state.ended == INTERRUPTED
    assert resumed.state.rounds > first.state.rounds
    assert "b" not in fake.log


@pytest.mark.parametrize("number", [MIN_ROUNDS, MIN_ROUNDS + 1])
def test_interrupted_run_is_planned_like_an_uninterrupted_one(
    make_run: MakeRun, number: int
) -> None:
    """Between the two looks that agree, and before the first round without b."""

    def interrupt(this_round: Round, arm: str) -> ArmResult:
        if this_round.number == number:
            raise KeyboardInterrupt
        return restless(this_round, arm)

    first, _ = timed_run(make_run, 5, interrupt)
    first.execute()
    now = [first.state.seconds]

    def turn(this_round: Round, arm: str) -> ArmResult:
        now[0] += 10
        return restless(this_round, arm)

    fake = FakeExecutor(override=turn)
    resumed = ExperimentRun(first.plan, first.folder, fake, lambda _: None)
    resumed.clock = lambda: now[0]
    resumed.execute()

    assert resumed.state.decided_arms == ["b"]
    assert resumed.state.plan_changes == [(MIN_ROUNDS + 2, 10)]


def test_run_ends_if_the_last_open_arm_fails(make_run: MakeRun) -> None:
    """The verdict on b stands, and c has none."""

    def fail(this_round: Round, arm: str) -> ArmResult:
        if arm == "c" and this_round.number > MIN_ROUNDS:
            return ArmResult(fake_rows(this_round, arm, "503"))
        return restless(this_round, arm)

    fake = FakeExecutor(override=fail)
    run_under_test = make_run("r", fake, rounds=50)
    run_under_test.execute()

    assert run_under_test.state.ended == run.REST_HAS_VERDICTS
    assert run_under_test.state.decided_arms == ["b"]
    assert run_under_test.state.rounds == MIN_ROUNDS + 1 + run.MAX_FAILED_ROUNDS


def test_plan_that_asks_for_all_rounds_keeps_all_arms(
    make_run: MakeRun,
) -> None:
    fake = FakeExecutor(override=restless)
    run_under_test = make_run("r", fake, rounds=12)
    design = run_under_test.plan.design.model_copy(update={"ends_at_verdict": False})
    run_under_test.plan = run_under_test.plan.model_copy(update={"design": design})
    run_under_test.execute()

    assert fake.log.count("b") == run_under_test.state.rounds == 12
    assert run_under_test.state.decided_arms == []

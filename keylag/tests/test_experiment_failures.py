"""Failures during a run: samples are kept, and failed requests give no verdict."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from fake_experiment import REQUESTS, FakeExecutor, MakeRun, fake_rows

from keylag.experiment import report, run
from keylag.experiment.interleaved_load import track_clock_steps
from keylag.experiment.plan import MIN_ROUNDS
from keylag.experiment.progress import describe_round
from keylag.experiment.result import analyse_run
from keylag.experiment.run import ArmResult, ExperimentRun
from keylag.experiment.run_folder import INTERRUPTED
from keylag.experiment.schedule import Round
from keylag.launcher import StackError


@pytest.mark.parametrize("room", [100, 10_000])
def test_run_that_hits_a_full_disk_can_be_resumed(make_run: MakeRun, room: int) -> None:
    whole = make_run("whole", FakeExecutor())
    whole.execute()
    full = make_run("full", FakeExecutor())
    with suppress(OSError), limit_file_size(room):
        full.execute()
    samples = full.folder.samples_path.read_bytes()
    make_run("full", FakeExecutor()).execute()

    assert len(samples) < len(whole.folder.samples_path.read_bytes())
    assert (
        full.folder.samples_path.read_bytes() == whole.folder.samples_path.read_bytes()
    )


@contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Limit the size of files, which fails like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_error_on_stop_is_recorded_as_an_event(make_run: MakeRun) -> None:
    fake = FakeExecutor()

    def fail() -> None:
        message = "the switch failed"
        raise StackError(message)

    fake.stop = fail
    run_under_test = make_run("r", fake)
    run_under_test.execute()
    state = run_under_test.folder.load_state()

    assert (state.rounds, state.events) == (6, ["the switch failed"])


def test_clock_step_is_measured_against_the_monotonic_clock() -> None:
    wall, steady = iter((1000.0, 1007.5)), iter((50.0, 56.0))
    clock_step = track_clock_steps(lambda: next(wall), lambda: next(steady))

    assert clock_step() == pytest.approx(1.5)


def test_arm_with_a_tenth_of_failed_requests_gets_no_verdict(make_run: MakeRun) -> None:
    def some_fail(this_round: Round, arm: str) -> ArmResult | None:
        mixed = ArmResult(
            fake_rows(this_round, arm)[:-1] + fake_rows(this_round, arm, "500")[-1:]
        )
        return mixed if arm == "b" else None

    run_under_test = make_run("r", FakeExecutor(override=some_fail), rounds=8)
    run_under_test.execute()
    found = analyse_run(run_under_test.folder)
    b = next(one for one in found.comparisons if one.arm == "b")

    assert not b.sound
    assert {d.verdict for d in b.measures.values()} == {"cannot tell yet"}
    assert found.request_counts["b"].by_code == {"500": 8}
    assert "b: cannot tell yet, compared with a. More than 1 % of" in found.headlines[0]
    assert found.request_counts["a"].failed == 0


def test_arm_without_success_in_three_rounds_is_skipped(make_run: MakeRun) -> None:
    fake = FakeExecutor(
        override=lambda b, arm: (
            ArmResult(fake_rows(b, arm, "503"), ["no"]) if arm == "b" else None
        )
    )
    run_under_test = make_run("r", fake, rounds=50)
    run_under_test.execute()
    progress = "\n".join(describe_round(run_under_test))
    report.write_reports(run_under_test.folder)
    page = (run_under_test.folder.path / "report.html").read_text()

    assert run_under_test.state.ended == run.ALL_VERDICTS_REACHED
    assert fake.log.count("b") == 3
    assert run_under_test.state.rounds > 3
    assert "b: skipped, no successful request in 3 rounds" in progress
    assert "Every arm has a verdict." in progress
    assert "b: fails, compared with a. No request succeeded." in page
    assert "Every arm has a verdict." in page
    assert "c: no difference that matters, compared with a" in page
    assert "round 2, arm b: no successful request in 3 consecutive rounds" in page


def test_an_arm_that_worked_and_failed_is_not_said_to_have_a_verdict(
    make_run: MakeRun,
) -> None:
    fake = FakeExecutor(
        override=lambda b, arm: (
            ArmResult(fake_rows(b, arm, "503")) if arm == "b" and b.number > 1 else None
        )
    )
    run_under_test = make_run("r", fake, rounds=50)
    run_under_test.execute()

    assert run_under_test.state.ended == run.REST_HAS_VERDICTS
    assert run_under_test.state.failed_rounds["b"] == run.MAX_FAILED_ROUNDS


def test_a_skipped_arm_stays_skipped_when_the_run_goes_on(make_run: MakeRun) -> None:
    def fail(this_round: Round, arm: str) -> ArmResult | None:
        if arm == "c" and this_round.number == 4:
            raise KeyboardInterrupt
        return ArmResult(fake_rows(this_round, arm, "503")) if arm == "b" else None

    first = make_run("r", FakeExecutor(override=fail), rounds=8)
    first.execute()
    fake = FakeExecutor()
    resumed = ExperimentRun(first.plan, first.folder, fake, lambda _: None)
    resumed.execute()

    assert first.state.ended == INTERRUPTED
    assert resumed.state.rounds > first.state.rounds
    assert "b" not in fake.log


def test_rounds_without_a_slow_arm_that_fails_get_all_of_the_time(
    make_run: MakeRun,
) -> None:
    """Three rounds of a minute, then of 20 s: 180 s leave room for nine of them."""
    run_under_test = make_run("r", FakeExecutor(), rounds=100)
    now = [0.0]

    def fail(this_round: Round, arm: str) -> ArmResult | None:
        now[0] += {"a": 20, "b": 40, "c": 0}[arm]
        return ArmResult(fake_rows(this_round, arm, "503")) if arm == "b" else None

    run_under_test.executor = FakeExecutor(override=fail)
    design = {"ends_at_verdict": False, "minutes": 6}
    run_under_test.plan = run_under_test.plan.model_copy(
        update={"design": run_under_test.plan.design.model_copy(update=design)}
    )
    run_under_test.state.planned_rounds = MIN_ROUNDS
    run_under_test.clock = lambda: now[0]
    run_under_test.execute()

    assert run_under_test.state.rounds == 12
    assert run_under_test.state.planned_rounds == 12


@pytest.mark.parametrize("failing", ["a", "bc"])
def test_run_ends_when_base_or_all_other_arms_fail(
    make_run: MakeRun, failing: str
) -> None:
    fake = FakeExecutor(
        override=lambda b, arm: (
            ArmResult(fake_rows(b, arm, "503")) if arm in failing else None
        )
    )
    run_under_test = make_run("r", fake, rounds=50)
    run_under_test.execute()

    assert run_under_test.state.ended == run.NOTHING_TO_COMPARE
    assert run_under_test.state.rounds == 3


def test_stack_error_ends_the_run_and_keeps_samples(make_run: MakeRun) -> None:
    def die(this_round: Round, _arm: str) -> None:
        if this_round.number == 2:
            message = "keystone: died with code 1"
            raise StackError(message)

    fake = FakeExecutor(override=die)
    run_under_test = make_run("r", fake)
    run_under_test.execute()
    found = analyse_run(run_under_test.folder)

    assert found.ended == run.STOPPED_BY_ERROR
    assert found.events == ["keystone: died with code 1"]
    assert found.rounds == 2
    assert len(run_under_test.folder.load_rows()) == 2 * 3 * REQUESTS
    assert fake.log[-1] == "stop"

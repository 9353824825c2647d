"""What goes wrong in a run: what was measured stays, and nothing rests on failures."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from fake_experiment import REQUESTS, FakeExecutor, MakeRun, fake_rows

from keylag.experiment import report, run
from keylag.experiment.interleaved_load import track_clock_steps
from keylag.experiment.result import analyse_run
from keylag.experiment.run import ArmResult
from keylag.experiment.schedule import Round
from keylag.launch import StackError


@pytest.mark.parametrize("room", [100, 10_000])
def test_a_full_disk_keeps_what_was_measured(make_run: MakeRun, room: int) -> None:
    """It ends where a file may grow no more, and goes on once there is room."""
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
    """Let no file grow beyond so many bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_arms_that_cannot_be_stopped_leave_a_report(make_run: MakeRun) -> None:
    """What was measured is written down, and the reason told."""
    fake = FakeExecutor()

    def fail() -> None:
        message = "the switch failed"
        raise StackError(message)

    fake.stop = fail
    experiment_run = make_run("r", fake)
    experiment_run.execute()
    state = experiment_run.folder.load_state()

    assert (state.rounds, state.events) == (6, ["the switch failed"])


def test_a_clock_that_is_set_is_noticed() -> None:
    """Times of day are compared with a clock that nobody sets."""
    wall, steady = iter((1000.0, 1007.5)), iter((50.0, 56.0))
    clock_step = track_clock_steps(lambda: next(wall), lambda: next(steady))

    assert clock_step() == pytest.approx(1.5)


def test_failed_requests_decide_nothing(make_run: MakeRun) -> None:
    """B answers 500 in a tenth of its requests: its others are not judged."""

    def some_fail(this_round: Round, arm: str) -> ArmResult | None:
        mixed = ArmResult(
            fake_rows(this_round, arm)[:-1] + fake_rows(this_round, arm, "500")[-1:]
        )
        return mixed if arm == "b" else None

    experiment_run = make_run("r", FakeExecutor(override=some_fail), rounds=8)
    experiment_run.execute()
    found = analyse_run(experiment_run.folder)
    b = next(one for one in found.comparisons if one.arm == "b")

    assert not b.sound
    assert {d.verdict for d in b.measures.values()} == {"cannot tell yet"}
    assert found.request_counts["b"].by_code == {"500": 8}
    assert "cannot tell yet. Too many requests failed" in found.headlines[0]
    assert found.request_counts["a"].failed == 0


def test_an_arm_that_fails_everything_is_given_up(make_run: MakeRun) -> None:
    """After three rounds; the others go on, and it has no verdict."""
    fake = FakeExecutor(
        override=lambda b, arm: (
            ArmResult(fake_rows(b, arm, "503"), ["no"]) if arm == "b" else None
        )
    )
    experiment_run = make_run("r", fake, rounds=50)
    experiment_run.execute()
    report.write_reports(experiment_run.folder)
    page = (experiment_run.folder.path / "report.html").read_text()

    assert experiment_run.state.ended == run.ALL_VERDICTS_REACHED
    assert fake.log.count("b") == 3
    assert experiment_run.state.rounds > 3
    assert "b: no request went well" in page
    assert "c: no difference that matters to a" in page
    assert "round 2, arm b: it answered nothing as asked 3 times in a row" in page


@pytest.mark.parametrize("failing", ["a", "bc"])
def test_a_run_without_anything_to_compare_ends(
    make_run: MakeRun, failing: str
) -> None:
    """The base fails everything, or all the others do."""
    fake = FakeExecutor(
        override=lambda b, arm: (
            ArmResult(fake_rows(b, arm, "503")) if arm in failing else None
        )
    )
    experiment_run = make_run("r", fake, rounds=50)
    experiment_run.execute()

    assert experiment_run.state.ended == run.NOTHING_TO_COMPARE
    assert experiment_run.state.rounds == 3


def test_a_keystone_that_does_not_come_back_leaves_a_report(make_run: MakeRun) -> None:
    """The samples so far stay, and the reason is told."""

    def die(this_round: Round, _arm: str) -> None:
        if this_round.number == 2:
            message = "keystone: died with code 1"
            raise StackError(message)

    fake = FakeExecutor(override=die)
    experiment_run = make_run("r", fake)
    experiment_run.execute()
    found = analyse_run(experiment_run.folder)

    assert found.ended == run.STOPPED_BY_ERROR
    assert found.events == ["keystone: died with code 1"]
    assert found.rounds == 2
    assert len(experiment_run.folder.load_rows()) == 2 * 3 * REQUESTS
    assert fake.log[-1] == "stop"

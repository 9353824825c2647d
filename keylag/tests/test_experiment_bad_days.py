"""What goes wrong in a run: what was measured stays, and nothing rests on failures."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from fake_experiment import REQUESTS, Fake, MakeRun, rows

from keylag.experiment import report, run
from keylag.experiment.loads import clock
from keylag.experiment.result import of_folder
from keylag.experiment.run import Sent
from keylag.experiment.schedule import Block
from keylag.launcher import StackError


@pytest.mark.parametrize("room", [100, 10_000])
def test_a_full_disk_keeps_what_was_measured(make_run: MakeRun, room: int) -> None:
    """It ends where a file may grow no more, and goes on once there is room."""
    whole = make_run("whole", Fake())
    whole.go()
    full = make_run("full", Fake())
    with suppress(OSError), files_up_to(room):
        full.go()
    samples = full.folder.samples.read_bytes()
    make_run("full", Fake()).go()

    assert len(samples) < len(whole.folder.samples.read_bytes())
    assert full.folder.samples.read_bytes() == whole.folder.samples.read_bytes()


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_arms_that_cannot_be_stopped_leave_a_report(make_run: MakeRun) -> None:
    """What was measured is written down, and the reason told."""
    fake = Fake()

    def fail() -> None:
        message = "the switch failed"
        raise StackError(message)

    fake.stop = fail
    under_way = make_run("r", fake)
    under_way.go()
    known = under_way.folder.load()

    assert (known.blocks, known.events) == (6, ["the switch failed"])


def test_a_clock_that_is_set_is_noticed() -> None:
    """Times of day are compared with a clock that nobody sets."""
    wall, steady = iter((1000.0, 1007.5)), iter((50.0, 56.0))
    moved = clock(lambda: next(wall), lambda: next(steady))

    assert moved() == pytest.approx(1.5)


def test_failed_requests_decide_nothing(make_run: MakeRun) -> None:
    """B answers 500 in a tenth of its requests: its others are not judged."""

    def some_fail(block: Block, arm: str) -> Sent | None:
        mixed = Sent(rows(block, arm)[:-1] + rows(block, arm, "500")[-1:])
        return mixed if arm == "b" else None

    under_way = make_run("r", Fake(wrong=some_fail), blocks=8)
    under_way.go()
    found = of_folder(under_way.folder)
    b = next(one for one in found.comparisons if one.arm == "b")

    assert not b.sound
    assert {d.verdict for d in b.measures.values()} == {"cannot tell yet"}
    assert found.tallies["b"].by_code == {"500": 8}
    assert "cannot tell yet. Too many requests failed" in found.headlines[0]
    assert found.tallies["a"].failed == 0


def test_an_arm_that_fails_everything_is_given_up(make_run: MakeRun) -> None:
    """After three blocks; the others go on, and it has no verdict."""
    fake = Fake(
        wrong=lambda b, arm: Sent(rows(b, arm, "503"), ["no"]) if arm == "b" else None
    )
    under_way = make_run("r", fake, blocks=50)
    under_way.go()
    report.write(under_way.folder)
    page = (under_way.folder.path / "report.html").read_text()

    assert under_way.journal.ended == run.CLEAR
    assert fake.log.count("b") == 3
    assert under_way.journal.blocks > 3
    assert "b: no request went well" in page
    assert "c: no difference that matters to a" in page
    assert "block 2, arm b: it answered nothing as asked 3 times in a row" in page


@pytest.mark.parametrize("failing", ["a", "bc"])
def test_a_run_without_anything_to_compare_ends(
    make_run: MakeRun, failing: str
) -> None:
    """The base fails everything, or all the others do."""
    fake = Fake(
        wrong=lambda b, arm: Sent(rows(b, arm, "503")) if arm in failing else None
    )
    under_way = make_run("r", fake, blocks=50)
    under_way.go()

    assert under_way.journal.ended == run.NOTHING_LEFT
    assert under_way.journal.blocks == 3


def test_a_keystone_that_does_not_come_back_leaves_a_report(make_run: MakeRun) -> None:
    """The samples so far stay, and the reason is told."""

    def die(block: Block, _arm: str) -> None:
        if block.number == 2:
            message = "keystone: died with code 1"
            raise StackError(message)

    fake = Fake(wrong=die)
    under_way = make_run("r", fake)
    under_way.go()
    found = of_folder(under_way.folder)

    assert found.ended == run.COULD_NOT_GO_ON
    assert found.events == ["keystone: died with code 1"]
    assert found.blocks == 2
    assert len(under_way.folder.rows()) == 2 * 3 * REQUESTS
    assert fake.log[-1] == "stop"

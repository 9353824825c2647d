"""Runs, with an executor whose answers are computed from what it is asked."""

import json
import math
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from keylag.commands import experiment
from keylag.experiment import report, run
from keylag.experiment.analysis import compare, tallies
from keylag.experiment.journal import INTERRUPTED, Folder, FolderError, Journal
from keylag.experiment.plan import Decision
from keylag.experiment.progress import lines
from keylag.experiment.result import of_folder
from keylag.experiment.run import Run, Sent
from keylag.experiment.samples import Row
from keylag.experiment.schedule import Turn, turns
from keylag.experiment.turn import clock
from keylag.launch import StackError
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


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Make runs with seed 3; the same folder goes on."""

    def make(name: str, fake: Fake, blocks: int = 6) -> Run:
        folder = Folder(tmp_path / name)
        if not folder.path.exists():
            plan = tmp_path / "plan.toml"
            plan.write_text(PLAN.format(blocks=blocks))
            folder.create(plan, Journal(seed=3, environment=ENVIRONMENT))
        return Run(folder.plan(), folder, fake, lambda _run: None)

    return make


def test_a_block_has_every_arm_once_in_an_order_of_the_seed() -> None:
    """All arms of a block have one hash seed; the same seed is the same order."""
    first = list(islice(turns(["a", "b", "c"], 1), 300))
    again = list(islice(turns(["a", "b", "c"], 1), 300))
    other = list(islice(turns(["a", "b", "c"], 2), 300))
    blocks = [first[n : n + 3] for n in range(0, 300, 3)]

    assert first == again != other
    assert all({turn.arm for turn in block} == {"a", "b", "c"} for block in blocks)
    assert all(len({turn.hash_seed for turn in block}) == 1 for block in blocks)
    assert len({tuple(turn.arm for turn in block) for block in blocks}) == 6


def test_fresh_keystones_before_each_block(make_run: MakeRun) -> None:
    """Start, then for each block one renewal and every arm, then stop."""
    fake = Fake()
    make_run("r", fake, blocks=5).go()

    assert (fake.log[0], fake.log[-1]) == ("start", "stop")
    kinds = [isinstance(entry, int) for entry in fake.log[1:-1]]
    assert kinds == [True, False, False, False] * 5


def test_it_stops_when_every_arm_is_clear(make_run: MakeRun) -> None:
    """B is faster by a tenth, c the same, long before 500 blocks."""
    under_way = make_run("r", Fake(), blocks=500)
    under_way.go()
    found = of_folder(under_way.folder)

    assert under_way.journal.ended == run.CLEAR
    assert under_way.blocks < 20
    said = {one.arm: one.measures["p50"].verdict for one in found.comparisons}
    assert said == {"b": "faster", "c": "no difference that matters"}
    assert "b: faster than a" in found.headlines[0]


def test_an_interrupted_run_gives_the_rows_of_an_uninterrupted_one(
    make_run: MakeRun,
) -> None:
    """Ctrl-C in the middle of a block, half a row left by a kill, then go on."""
    whole = make_run("whole", Fake())
    whole.go()
    seen: list[Turn] = []

    def interrupt(turn: Turn) -> None:
        seen.append(turn)
        if len(seen) == 8:
            raise KeyboardInterrupt

    broken = make_run("broken", Fake(wrong=interrupt))
    broken.go()
    between = broken.folder.load()
    with broken.folder.samples.open("a") as stream:
        stream.write("2,1,b,10")
    rest = Fake()
    make_run("broken", rest).go()

    assert (between.ended, between.turns) == (INTERRUPTED, 7)
    assert broken.folder.samples.read_bytes() == whole.folder.samples.read_bytes()
    assert isinstance(rest.log[1], int)  # a fresh Keystone before it goes on


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

    assert (known.turns, known.events) == (18, ["the switch failed"])


def test_one_arm_alone_is_measured_to_its_end(make_run: MakeRun) -> None:
    """There is nothing to be clear about; `compare` needs its blocks."""
    under_way = make_run("r", Fake())
    only = {"arms": {"a": under_way.plan.arms["a"]}}
    under_way.plan = under_way.plan.model_copy(update=only)
    under_way.go()

    assert under_way.journal.ended == run.BLOCKS_DONE
    assert under_way.blocks == 6


def test_a_clock_that_is_set_is_noticed() -> None:
    """Times of day are compared with a clock that nobody sets."""
    wall, steady = iter((1000.0, 1007.5)), iter((50.0, 56.0))
    moved = clock(lambda: next(wall), lambda: next(steady))

    assert moved() == pytest.approx(1.5)


def test_failed_requests_decide_nothing(make_run: MakeRun) -> None:
    """B answers 500 in a tenth of its requests: its others are not judged."""

    def some_fail(turn: Turn) -> Sent | None:
        mixed = Sent(rows(turn)[:-1] + rows(turn, "500")[-1:])
        return mixed if turn.arm == "b" else None

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
    """After three turns; the others go on, and it has no verdict."""
    fake = Fake(wrong=lambda t: Sent(rows(t, "503"), ["no"]) if t.arm == "b" else None)
    under_way = make_run("r", fake, blocks=50)
    under_way.go()
    report.write(under_way.folder)
    page = (under_way.folder.path / "report.html").read_text()

    assert under_way.journal.ended == run.CLEAR
    assert fake.log.count("b") == 3
    assert under_way.blocks > 3
    assert "b: no request went well" in page
    assert "c: no difference that matters to a" in page
    assert "block 2, arm b: it answered nothing as asked 3 times in a row" in page


@pytest.mark.parametrize("failing", ["a", "bc"])
def test_a_run_without_anything_to_compare_ends(
    make_run: MakeRun, failing: str
) -> None:
    """The base fails everything, or all the others do."""
    fake = Fake(wrong=lambda t: Sent(rows(t, "503")) if t.arm in failing else None)
    under_way = make_run("r", fake, blocks=50)
    under_way.go()

    assert under_way.journal.ended == run.NOTHING_LEFT
    assert under_way.journal.turns <= 9


def test_a_keystone_that_does_not_come_back_leaves_a_report(make_run: MakeRun) -> None:
    """The samples so far stay, and the reason is told."""

    def die(turn: Turn) -> None:
        if turn.block == 2:
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


def test_no_block_begins_that_would_not_end_in_time(make_run: MakeRun) -> None:
    """Each turn takes ten minutes of an hour: one block of three fits, and one more."""
    under_way = make_run("r", Fake(), blocks=100)
    now = [0.0]

    def later(_turn: Turn) -> None:
        now[0] += 600

    under_way.executor = Fake(wrong=later)
    under_way.clock = lambda: now[0]
    under_way.go()

    assert under_way.journal.ended == run.TIME_OVER
    assert under_way.blocks == 2


def test_the_parts_of_a_difference_add_up(make_run: MakeRun) -> None:
    """In each comparison, to the difference of the mean."""
    under_way = make_run("r", Fake())
    under_way.go()

    for one in of_folder(under_way.folder).comparisons:
        parts = math.fsum(part.absolute.mid for part in one.parts.values())
        assert parts == pytest.approx(one.measures["mean"].absolute.mid)


def test_more_arms_have_wider_intervals(make_run: MakeRun) -> None:
    """The five per cent are shared among the arms."""
    under_way = make_run("r", Fake())
    under_way.go()
    decision = Decision(method="GET")
    both = compare(under_way.rows, "a", ["b", "c"], decision)[0].measures["p50"]
    alone = compare(under_way.rows, "a", ["b"], decision)[0].measures["p50"]

    assert both.absolute.low < alone.absolute.low
    assert both.absolute.mid == alone.absolute.mid


def test_warm_up_is_in_the_file_and_in_no_figure(make_run: MakeRun) -> None:
    """Of twelve requests of a turn two are warm-up."""
    under_way = make_run("r", Fake())
    under_way.go()

    assert tallies(under_way.folder.rows())["a"].requests == 6 * (REQUESTS - 2)


def test_the_reports_of_a_run(make_run: MakeRun) -> None:
    """result.json is strict JSON; the page needs nothing else and escapes."""
    under_way = make_run("r", Fake())
    under_way.go()
    report.write(under_way.folder)
    page = (under_way.folder.path / "report.html").read_text()
    known = json.loads((under_way.folder.path / "result.json").read_text())

    assert known["comparisons"][0]["measures"]["p50"]["verdict"] == "faster"
    assert "Is &lt;b&gt; faster?" in page
    assert "src=" not in page
    assert "href=" not in page
    assert page.count("<polyline") == 6
    assert "SQL -10.00" in page
    assert "| median |" in (under_way.folder.path / "report.md").read_text()


def test_progress_says_estimate_and_time(make_run: MakeRun) -> None:
    """After a block, a line for each arm."""
    under_way = make_run("r", Fake())
    under_way.go()
    said = "\n".join(lines(under_way))

    assert "min left" in said
    assert "b: -" in said
    assert "faster" in said


def test_a_folder_holds_one_run(make_run: MakeRun, tmp_path: Path) -> None:
    """A second one would mix its samples with the first one's."""
    under_way = make_run("r", Fake())

    with pytest.raises(FolderError, match="resume"):
        under_way.folder.create(tmp_path / "plan.toml", Journal(seed=1))
    with pytest.raises(FolderError, match="holds no run"):
        Folder(tmp_path).load()


def test_two_runs_are_weaker_evidence(make_run: MakeRun) -> None:
    """`compare` names each arm by its run and says what it is worth."""
    for name in ("r", "s"):
        under_way = make_run(name, Fake())
        under_way.go()
    folders = [str(under_way.folder.path.with_name(name)) for name in ("r", "s")]
    result = CliRunner().invoke(experiment.command, ["compare", *folders])

    assert result.exit_code == 0
    assert "Weaker evidence" in result.output
    assert "s/b against r/a" in result.output

"""Runs, with an executor whose answers are computed from what it is asked."""

import json
import math
import re
from dataclasses import replace
from itertools import islice, permutations
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_experiment import REQUESTS, Fake, MakeRun, rows

from keylag.cli import main
from keylag.commands import experiment
from keylag.experiment import forecast, report, run
from keylag.experiment.analysis import compare, tallies
from keylag.experiment.arms import PLANS
from keylag.experiment.journal import INTERRUPTED, Folder, FolderError, Journal
from keylag.experiment.plan import Decision
from keylag.experiment.progress import lines
from keylag.experiment.result import of_folder
from keylag.experiment.schedule import Block, blocks
from keylag.state import state_folder


def test_a_block_has_every_arm_once_in_an_order_of_the_seed() -> None:
    """Each block has a hash seed of its own; the same seed is the same order."""
    first = list(islice(blocks(["a", "b", "c"], 1), 100))
    again = list(islice(blocks(["a", "b", "c"], 1), 100))
    other = list(islice(blocks(["a", "b", "c"], 2), 100))

    assert first == again != other
    assert [block.number for block in first] == list(range(100))
    assert len({block.hash_seed for block in first}) == 100
    assert {tuple(block.arms) for block in first} == set(permutations("abc"))


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
    assert under_way.journal.blocks < 20
    said = {one.arm: one.measures["p50"].verdict for one in found.comparisons}
    assert said == {"b": "faster", "c": "no difference that matters"}
    assert "b: faster than a" in found.headlines[0]


def test_an_interrupted_run_gives_the_rows_of_an_uninterrupted_one(
    make_run: MakeRun,
) -> None:
    """Ctrl-C in the middle of a block, half a row left by a kill, then go on."""
    whole = make_run("whole", Fake())
    whole.go()

    def interrupt(block: Block, arm: str) -> None:
        if (block.number, arm) == (2, block.arms[1]):
            raise KeyboardInterrupt

    broken = make_run("broken", Fake(wrong=interrupt))
    broken.go()
    between = broken.folder.load()
    with broken.folder.samples.open("a") as stream:
        stream.write("2,1,b,10")
    rest = Fake()
    make_run("broken", rest).go()

    assert (between.ended, between.blocks) == (INTERRUPTED, 2)
    assert broken.folder.samples.read_bytes() == whole.folder.samples.read_bytes()
    assert isinstance(rest.log[1], int)  # a fresh Keystone before it goes on


def test_one_arm_alone_is_measured_to_its_end(make_run: MakeRun) -> None:
    """There is nothing to be clear about; `compare` needs its blocks."""
    under_way = make_run("r", Fake())
    only = {"arms": {"a": under_way.plan.arms["a"]}}
    under_way.plan = under_way.plan.model_copy(update=only)
    under_way.go()

    assert under_way.journal.ended == run.BLOCKS_DONE
    assert under_way.journal.blocks == 6


def test_no_block_begins_that_would_not_end_in_time(make_run: MakeRun) -> None:
    """Each arm takes ten minutes of an hour: one block of three fits, and one more."""
    under_way = make_run("r", Fake(), blocks=100)
    now = [0.0]

    def later(_block: Block, _arm: str) -> None:
        now[0] += 600

    under_way.executor = Fake(wrong=later)
    under_way.clock = lambda: now[0]
    under_way.go()

    assert under_way.journal.ended == run.TIME_OVER
    assert under_way.journal.blocks == 2


def test_the_parts_of_a_difference_add_up(make_run: MakeRun) -> None:
    """In each comparison, to the difference of the mean."""
    under_way = make_run("r", Fake())
    under_way.go()

    found = of_folder(under_way.folder).comparisons

    assert [one.arm for one in found] == ["b", "c"]
    for one in found:
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
    """Of an arm's twelve requests in a block two are warm-up."""
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
    assert "A slice has room for 2.4 requests of a after each other" in page
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
    result = CliRunner().invoke(main, ["experiment", "compare", *folders])

    assert result.exit_code == 0
    assert "Weaker evidence" in result.output
    assert "s/b against r/a" in result.output


def test_the_columns_of_two_runs_are_told_apart_at_80_columns(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the names of runs and arms are."""
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"cache-backends/2026-11-22T1{n}-05-00Z" for n in range(2)]
    paths = []
    for name in names:
        under_way = make_run(name, Fake())
        under_way.go()
        paths.append(str(under_way.folder.path))
    result = CliRunner().invoke(main, ["experiment", "compare", *paths])
    lines = result.output.splitlines()

    assert result.exit_code == 0, result.output
    assert max(map(len, lines)) <= 80
    assert "…" not in result.output
    assert "The base is 2026-11-22T10-05-00Z/a, the arm 2026-11-22T11-05-00Z/b." in (
        " ".join(result.output.split())
    )


def test_runs_of_the_same_name_are_told_apart(
    make_run: MakeRun, tmp_path: Path
) -> None:
    """By their folders; a run is not compared with itself."""
    folders = []
    for name in ("r/same", "s/same"):
        under_way = make_run(name, Fake())
        under_way.go()
        folders.append(under_way.folder)

    assert "s/same/b against r/same/a" in report.markdown_of_two(*folders)
    (tmp_path / "latest").symlink_to(folders[0].path)
    with pytest.raises(FolderError, match="are one run"):
        report.markdown_of_two(folders[0], Folder(tmp_path / "latest"))


def test_an_arm_keeps_its_colour_where_another_has_no_line(make_run: MakeRun) -> None:
    """As the legend has it."""

    def fail(block: Block, arm: str) -> run.Sent | None:
        return run.Sent(rows(block, arm, "500")) if arm == "a" else None

    under_way = make_run("r", Fake(wrong=fail))
    under_way.go()
    report.write(under_way.folder)
    page = (under_way.folder.path / "report.html").read_text()

    for number, arm in ((1, "b"), (2, "c")):
        line = rf'<polyline class="arm{number}" [^>]*><title>{arm}</title>'
        assert len(re.findall(line, page)) == 2


def test_a_run_without_a_whole_block_has_no_empty_charts(make_run: MakeRun) -> None:
    """Interrupted in the first; axes from 0 to 1 would show nothing."""

    def interrupt(_block: Block, _arm: str) -> None:
        raise KeyboardInterrupt

    under_way = make_run("r", Fake(wrong=interrupt))
    under_way.go()
    report.write(under_way.folder)
    page = (under_way.folder.path / "report.html").read_text()

    assert page.count("No block is whole yet, so there is nothing to draw.") == 2
    assert "<figcaption>" not in page
    assert "from 0 to 1" not in page


@pytest.mark.parametrize("code", ["200", "500"])
def test_a_run_in_which_everything_failed_ends_with_an_error(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """And says why; one with an answer does not."""

    def answer(block: Block, arm: str) -> run.Sent:
        return run.Sent(rows(block, arm, code), ["503 Service Unavailable"])

    under_way = make_run("r", Fake())
    fake = Fake(wrong=answer)
    monkeypatch.setenv("KEYLAG_STATE", str(tmp_path))
    monkeypatch.setattr(experiment, "_executor", lambda *_: fake)
    arguments = ["resume", str(under_way.folder.path)]
    result = CliRunner().invoke(main, ["experiment", *arguments])

    assert result.exit_code == (code == "500"), result.output
    said = f"Error: {under_way.folder.path}: of what is compared, nothing answers"
    assert (said in result.output) == (code == "500")


def test_rows_of_a_block_under_way_are_not_read(make_run: MakeRun) -> None:
    """A result may be read, and compared, while its run goes on."""
    under_way = make_run("r", Fake())
    under_way.go()
    folder = under_way.folder
    before = folder.rows()
    last = folder.samples.read_text().splitlines()[-1]
    with folder.samples.open("a") as stream:
        stream.write(f"{last}\r\n{last[:20]}")

    assert folder.rows() == before
    assert of_folder(folder).tallies == tallies(before)


def test_a_run_may_be_bounded(make_run: MakeRun) -> None:
    """Its own limit is in run.json; the plan in its folder stays as it was."""
    under_way = make_run("r", Fake())
    folder = under_way.folder
    folder.save(replace(folder.load(), minutes=7.5))

    assert folder.plan().design.minutes == 7.5
    assert "minutes = 60" in (folder.path / "plan.toml").read_text()


def test_too_short_a_limit_is_refused(make_run: MakeRun) -> None:
    """With what it would take."""
    folder = make_run("r", Fake()).folder
    arguments = ["resume", str(folder.path), "--minutes", "0.5"]
    result = CliRunner().invoke(main, ["experiment", *arguments])

    assert result.exit_code == 2
    assert "--minutes 0.5: 5 blocks, the fewest that tell anything, take 35 s" in (
        result.output
    )
    assert folder.load().minutes is None


def test_what_could_be_told_is_said(make_run: MakeRun) -> None:
    """By the widest interval that is still open."""
    under_way = make_run("r", Fake(), blocks=5)
    under_way.go()
    found = of_folder(under_way.folder)
    (still_open,) = [
        one.measures["p50"]
        for one in found.comparisons
        if one.measures["p50"].verdict == "cannot tell yet"
    ]

    half = (still_open.relative.high - still_open.relative.low) / 2
    assert f"Differences above {100 * half:.1f} % can be told so far." in found.outlook


def test_a_forecast_of_time_and_of_what_it_tells(make_run: MakeRun) -> None:
    """Three arms: 7 s of load and 18 s of starts in each block."""
    plan = make_run("r", Fake(), blocks=40).plan
    hour, short = forecast.of_plan(plan), forecast.of_plan(plan.bounded(1))
    said = "\n".join(forecast.lines(plan))

    assert (hour.blocks, hour.block_seconds) == (40, 25)
    assert (short.blocks, short.reach) == (2, math.inf)
    assert "Arms: a (base), b, c\nLoad: token-validate\n" in said
    assert "Blocks: 40 of about 25 s each, 7 s of it load" in said
    assert "Time: about 17 min, at most 60, once all arms have started" in said
    assert "It can tell: differences above 0.6 times" in said
    assert "nothing, from so few" in "\n".join(forecast.lines(plan.bounded(1)))


@pytest.mark.stack
def test_a_dry_run_checks_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder, no stack; a mistake is told as ever."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEYLAG_STATE", str(state_folder()))
    path = PLANS / "same.toml"
    result = CliRunner().invoke(
        main, ["experiment", "run", str(path), "--dry-run", "--minutes", "20"]
    )

    assert result.exit_code == 0, result.output
    assert "at most 20, once all arms" in result.output
    assert "nothing was started" in result.output
    assert list(tmp_path.iterdir()) == []

"""Runs, with an executor whose answers are computed from what it is asked."""

import json
import math
import re
from dataclasses import replace
from itertools import islice, permutations
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_experiment import REQUESTS, FakeExecutor, MakeRun, fake_rows

from keylag.cli import main
from keylag.commands import experiment
from keylag.experiment import forecast, report, run
from keylag.experiment.analysis import compare_arms, count_requests
from keylag.experiment.plan import Decision
from keylag.experiment.progress import describe_round
from keylag.experiment.result import analyse_run
from keylag.experiment.run_folder import (
    INTERRUPTED,
    RunFolder,
    RunFolderError,
    RunState,
)
from keylag.experiment.schedule import Round, schedule_rounds
from keylag.experiment.stack_setup import PLANS_FOLDER
from keylag.state import state_folder


def test_a_block_has_every_arm_once_in_an_order_of_the_seed() -> None:
    """Each round has a hash seed of its own; the same seed is the same order."""
    first = list(islice(schedule_rounds(["a", "b", "c"], 1), 100))
    again = list(islice(schedule_rounds(["a", "b", "c"], 1), 100))
    other = list(islice(schedule_rounds(["a", "b", "c"], 2), 100))

    assert first == again != other
    assert [this_round.number for this_round in first] == list(range(100))
    assert len({this_round.hash_seed for this_round in first}) == 100
    assert {tuple(this_round.arms) for this_round in first} == set(permutations("abc"))


def test_fresh_keystones_before_each_block(make_run: MakeRun) -> None:
    """Start, then for each round one renewal and every arm, then stop."""
    fake = FakeExecutor()
    make_run("r", fake, rounds=5).execute()

    assert (fake.log[0], fake.log[-1]) == ("start", "stop")
    kinds = [isinstance(entry, int) for entry in fake.log[1:-1]]
    assert kinds == [True, False, False, False] * 5


def test_it_stops_when_every_arm_is_clear(make_run: MakeRun) -> None:
    """B is faster by a tenth, c the same, long before 500 rounds."""
    experiment_run = make_run("r", FakeExecutor(), rounds=500)
    experiment_run.execute()
    found = analyse_run(experiment_run.folder)

    assert experiment_run.state.ended == run.ALL_VERDICTS_REACHED
    assert experiment_run.state.rounds < 20
    output = {one.arm: one.measures["p50"].verdict for one in found.comparisons}
    assert output == {"b": "faster", "c": "no difference that matters"}
    assert "b: faster than a" in found.headlines[0]


def test_an_interrupted_run_gives_the_rows_of_an_uninterrupted_one(
    make_run: MakeRun,
) -> None:
    """Ctrl-C in the middle of a round, half a row left by a kill, then go on."""
    whole = make_run("whole", FakeExecutor())
    whole.execute()

    def interrupt(this_round: Round, arm: str) -> None:
        if (this_round.number, arm) == (2, this_round.arms[1]):
            raise KeyboardInterrupt

    broken = make_run("broken", FakeExecutor(override=interrupt))
    broken.execute()
    between = broken.folder.load_state()
    with broken.folder.samples_path.open("a") as stream:
        stream.write("2,1,b,10")
    rest = FakeExecutor()
    make_run("broken", rest).execute()

    assert (between.ended, between.rounds) == (INTERRUPTED, 2)
    assert (
        broken.folder.samples_path.read_bytes()
        == whole.folder.samples_path.read_bytes()
    )
    assert isinstance(rest.log[1], int)  # a fresh Keystone before it goes on


def test_one_arm_alone_is_measured_to_its_end(make_run: MakeRun) -> None:
    """There is nothing to be clear about; `compare` needs its rounds."""
    experiment_run = make_run("r", FakeExecutor())
    only = {"arms": {"a": experiment_run.plan.arms["a"]}}
    experiment_run.plan = experiment_run.plan.model_copy(update=only)
    experiment_run.execute()

    assert experiment_run.state.ended == run.ROUNDS_DONE
    assert experiment_run.state.rounds == 6


def test_no_block_begins_that_would_not_end_in_time(make_run: MakeRun) -> None:
    """Each arm takes ten minutes of an hour: one round of three fits, and one more."""
    experiment_run = make_run("r", FakeExecutor(), rounds=100)
    now = [0.0]

    def later(_round: Round, _arm: str) -> None:
        now[0] += 600

    experiment_run.executor = FakeExecutor(override=later)
    experiment_run.clock = lambda: now[0]
    experiment_run.execute()

    assert experiment_run.state.ended == run.TIME_LIMIT_REACHED
    assert experiment_run.state.rounds == 2


def test_the_parts_of_a_difference_add_up(make_run: MakeRun) -> None:
    """In each comparison, to the difference of the mean."""
    experiment_run = make_run("r", FakeExecutor())
    experiment_run.execute()

    found = analyse_run(experiment_run.folder).comparisons

    assert [one.arm for one in found] == ["b", "c"]
    for one in found:
        parts = math.fsum(part.absolute.mid for part in one.parts.values())
        assert parts == pytest.approx(one.measures["mean"].absolute.mid)


def test_more_arms_have_wider_intervals(make_run: MakeRun) -> None:
    """The five per cent are shared among the arms."""
    experiment_run = make_run("r", FakeExecutor())
    experiment_run.execute()
    decision = Decision(method="GET")
    both = compare_arms(experiment_run.rows, "a", ["b", "c"], decision)[0].measures[
        "p50"
    ]
    alone = compare_arms(experiment_run.rows, "a", ["b"], decision)[0].measures["p50"]

    assert both.absolute.low < alone.absolute.low
    assert both.absolute.mid == alone.absolute.mid


def test_warm_up_is_in_the_file_and_in_no_figure(make_run: MakeRun) -> None:
    """Of an arm's twelve requests in a round two are warm-up."""
    experiment_run = make_run("r", FakeExecutor())
    experiment_run.execute()

    assert count_requests(experiment_run.folder.load_rows())["a"].requests == 6 * (
        REQUESTS - 2
    )


def test_the_reports_of_a_run(make_run: MakeRun) -> None:
    """result.json is strict JSON; the page needs nothing else and escapes."""
    experiment_run = make_run("r", FakeExecutor())
    experiment_run.execute()
    report.write_reports(experiment_run.folder)
    page = (experiment_run.folder.path / "report.html").read_text()
    known = json.loads((experiment_run.folder.path / "result.json").read_text())

    assert known["comparisons"][0]["measures"]["p50"]["verdict"] == "faster"
    assert "A slice has room for 2.4 requests of a after each other" in page
    assert "Is &lt;b&gt; faster?" in page
    assert "src=" not in page
    assert "href=" not in page
    assert page.count("<polyline") == 6
    assert "SQL -10.00" in page
    assert "| median |" in (experiment_run.folder.path / "report.md").read_text()


def test_progress_says_estimate_and_time(make_run: MakeRun) -> None:
    """After a round, a line for each arm."""
    experiment_run = make_run("r", FakeExecutor())
    experiment_run.execute()
    output = "\n".join(describe_round(experiment_run))

    assert "min left" in output
    assert "b: -" in output
    assert "faster" in output


def test_a_folder_holds_one_run(make_run: MakeRun, tmp_path: Path) -> None:
    """A second one would mix its samples with the first one's."""
    experiment_run = make_run("r", FakeExecutor())

    with pytest.raises(RunFolderError, match="resume"):
        experiment_run.folder.create(tmp_path / "plan.toml", RunState(seed=1))
    with pytest.raises(RunFolderError, match="holds no run"):
        RunFolder(tmp_path).load_state()


def test_two_runs_are_weaker_evidence(make_run: MakeRun) -> None:
    """`compare` names each arm by its run and says what it is worth."""
    for name in ("r", "s"):
        experiment_run = make_run(name, FakeExecutor())
        experiment_run.execute()
    folders = [str(experiment_run.folder.path.with_name(name)) for name in ("r", "s")]
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
        experiment_run = make_run(name, FakeExecutor())
        experiment_run.execute()
        paths.append(str(experiment_run.folder.path))
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
        experiment_run = make_run(name, FakeExecutor())
        experiment_run.execute()
        folders.append(experiment_run.folder)

    assert "s/same/b against r/same/a" in report.compare_runs(*folders)
    (tmp_path / "latest").symlink_to(folders[0].path)
    with pytest.raises(RunFolderError, match="are one run"):
        report.compare_runs(folders[0], RunFolder(tmp_path / "latest"))


def test_an_arm_keeps_its_colour_where_another_has_no_line(make_run: MakeRun) -> None:
    """As the legend has it."""

    def fail(this_round: Round, arm: str) -> run.ArmResult | None:
        return run.ArmResult(fake_rows(this_round, arm, "500")) if arm == "a" else None

    experiment_run = make_run("r", FakeExecutor(override=fail))
    experiment_run.execute()
    report.write_reports(experiment_run.folder)
    page = (experiment_run.folder.path / "report.html").read_text()

    for number, arm in ((1, "b"), (2, "c")):
        line = rf'<polyline class="arm{number}" [^>]*><title>{arm}</title>'
        assert len(re.findall(line, page)) == 2


def test_a_run_without_a_whole_block_has_no_empty_charts(make_run: MakeRun) -> None:
    """Interrupted in the first; axes from 0 to 1 would show nothing."""

    def interrupt(_round: Round, _arm: str) -> None:
        raise KeyboardInterrupt

    experiment_run = make_run("r", FakeExecutor(override=interrupt))
    experiment_run.execute()
    report.write_reports(experiment_run.folder)
    page = (experiment_run.folder.path / "report.html").read_text()

    assert page.count("No round is whole yet, so there is nothing to draw.") == 2
    assert "<figcaption>" not in page
    assert "from 0 to 1" not in page


@pytest.mark.parametrize("code", ["200", "500"])
def test_a_run_in_which_everything_failed_ends_with_an_error(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """And says why; one with an answer does not."""

    def answer(this_round: Round, arm: str) -> run.ArmResult:
        return run.ArmResult(
            fake_rows(this_round, arm, code), ["503 Service Unavailable"]
        )

    experiment_run = make_run("r", FakeExecutor())
    fake = FakeExecutor(override=answer)
    monkeypatch.setenv("KEYLAG_STATE", str(tmp_path))
    monkeypatch.setattr(experiment, "_make_executor", lambda *_: fake)
    arguments = ["resume", str(experiment_run.folder.path)]
    result = CliRunner().invoke(main, ["experiment", *arguments])

    assert result.exit_code == (code == "500"), result.output
    output = (
        f"Error: {experiment_run.folder.path}: of what is compared, nothing answers"
    )
    assert (output in result.output) == (code == "500")


def test_rows_of_a_block_under_way_are_not_read(make_run: MakeRun) -> None:
    """A result may be read, and compared, while its run goes on."""
    experiment_run = make_run("r", FakeExecutor())
    experiment_run.execute()
    folder = experiment_run.folder
    before = folder.load_rows()
    last = folder.samples_path.read_text().splitlines()[-1]
    with folder.samples_path.open("a") as stream:
        stream.write(f"{last}\r\n{last[:20]}")

    assert folder.load_rows() == before
    assert analyse_run(folder).request_counts == count_requests(before)


def test_a_run_may_be_bounded(make_run: MakeRun) -> None:
    """Its own limit is in run.json; the plan in its folder stays as it was."""
    experiment_run = make_run("r", FakeExecutor())
    folder = experiment_run.folder
    folder.save_state(replace(folder.load_state(), minutes=7.5))

    assert folder.load_plan().design.minutes == 7.5
    assert "minutes = 60" in (folder.path / "plan.toml").read_text()


def test_too_short_a_limit_is_refused(make_run: MakeRun) -> None:
    """With what it would take."""
    folder = make_run("r", FakeExecutor()).folder
    arguments = ["resume", str(folder.path), "--minutes", "0.5"]
    result = CliRunner().invoke(main, ["experiment", *arguments])

    assert result.exit_code == 2
    assert "--minutes 0.5: 5 rounds, the fewest that tell anything, take 35 s" in (
        result.output
    )
    assert folder.load_state().minutes is None


def test_what_could_be_told_is_said(make_run: MakeRun) -> None:
    """By the widest interval that is still open."""
    experiment_run = make_run("r", FakeExecutor(), rounds=5)
    experiment_run.execute()
    found = analyse_run(experiment_run.folder)
    (still_open,) = [
        one.measures["p50"]
        for one in found.comparisons
        if one.measures["p50"].verdict == "cannot tell yet"
    ]

    half = (still_open.relative.high - still_open.relative.low) / 2
    assert f"Differences above {100 * half:.1f} % can be told so far." in found.outlook


def test_a_forecast_of_time_and_of_what_it_tells(make_run: MakeRun) -> None:
    """Three arms: 7 s of load and 18 s of starts in each round."""
    plan = make_run("r", FakeExecutor(), rounds=40).plan
    hour, short = (
        forecast.forecast_plan(plan),
        forecast.forecast_plan(plan.with_minutes(1)),
    )
    output = "\n".join(forecast.describe_plan(plan))

    assert (hour.rounds, hour.round_seconds) == (40, 25)
    assert (short.rounds, short.half_width_in_sd) == (2, math.inf)
    assert "Arms: a (base), b, c\nLoad: token-validate\n" in output
    assert "Rounds: 40 of about 25 s each, 7 s of it load" in output
    assert "Time: about 17 min, at most 60, once all arms have started" in output
    assert "It can tell: differences above 0.6 times" in output
    assert "nothing, from so few" in "\n".join(
        forecast.describe_plan(plan.with_minutes(1))
    )


@pytest.mark.stack
def test_a_dry_run_checks_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder, no stack; a mistake is told as ever."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEYLAG_STATE", str(state_folder()))
    path = PLANS_FOLDER / "same.toml"
    result = CliRunner().invoke(
        main, ["experiment", "run", str(path), "--dry-run", "--minutes", "20"]
    )

    assert result.exit_code == 0, result.output
    assert "at most 20, once all arms" in result.output
    assert "nothing was started" in result.output
    assert list(tmp_path.iterdir()) == []

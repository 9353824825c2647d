"""Runs with a fake executor that computes its responses."""

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
from keylag.experiment.analysis import count_requests
from keylag.experiment.plan import MIN_ROUNDS, Plan
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


def test_seed_decides_order_and_hash_seeds_of_rounds() -> None:
    first = list(islice(schedule_rounds(["a", "b", "c"], 1), 100))
    again = list(islice(schedule_rounds(["a", "b", "c"], 1), 100))
    other = list(islice(schedule_rounds(["a", "b", "c"], 2), 100))

    assert first == again != other
    assert [this_round.number for this_round in first] == list(range(100))
    assert len({this_round.hash_seed for this_round in first}) == 100
    assert {tuple(this_round.arms) for this_round in first} == set(permutations("abc"))


def test_executor_restarts_keystones_before_each_round(make_run: MakeRun) -> None:
    fake = FakeExecutor()
    make_run("r", fake, rounds=5).execute()

    assert (fake.log[0], fake.log[-1]) == ("start", "stop")
    kinds = [isinstance(entry, int) for entry in fake.log[1:-1]]
    assert kinds == [True, False, False, False] * 5


def test_run_ends_when_every_arm_has_a_verdict(make_run: MakeRun) -> None:
    """Arm b is 10 % faster than the base, and c is equal."""
    fake = FakeExecutor()
    run_under_test = make_run("r", fake, rounds=500)
    run_under_test.clock = lambda: len(fake.log) * run_under_test.plan.round_seconds / 4
    run_under_test.execute()
    found = analyse_run(run_under_test.folder)

    assert run_under_test.state.ended == run.ALL_VERDICTS_REACHED
    assert run_under_test.state.rounds < 20
    verdicts = {one.arm: one.measures["p50"].verdict for one in found.comparisons}
    assert verdicts == {"b": "faster", "c": "no difference that matters"}
    assert "b: faster than a" in found.headlines[0]


def test_run_that_asks_for_the_size_of_an_effect_does_all_rounds(
    make_run: MakeRun,
) -> None:
    run_under_test = make_run("r", FakeExecutor(), rounds=25)
    run_under_test.plan = endless(run_under_test.plan)
    run_under_test.execute()

    assert run_under_test.state.ended == run.ROUNDS_DONE
    assert run_under_test.state.rounds == 25


def test_resumed_run_has_the_samples_of_an_uninterrupted_one(
    make_run: MakeRun,
) -> None:
    """Ctrl-C in the middle of a round, and an incomplete row as left by a kill."""
    whole = make_run("whole", FakeExecutor())
    whole.execute()

    def interrupt(this_round: Round, arm: str) -> None:
        if (this_round.number, arm) == (2, this_round.arms[1]):
            raise KeyboardInterrupt

    resumed = make_run("resumed", FakeExecutor(override=interrupt))
    resumed.execute()
    interrupted = resumed.folder.load_state()
    with resumed.folder.samples_path.open("a") as stream:
        stream.write("2,1,b,10")
    rest = FakeExecutor()
    make_run("resumed", rest).execute()

    assert (interrupted.ended, interrupted.rounds) == (INTERRUPTED, 2)
    samples, expected = (r.folder.samples_path.read_bytes() for r in (resumed, whole))
    assert samples == expected
    assert isinstance(
        rest.log[1], int
    )  # Keystones restart before the first resumed round


def test_run_with_one_arm_runs_all_rounds(make_run: MakeRun) -> None:
    run_under_test = make_run("r", FakeExecutor())
    only = {"arms": {"a": run_under_test.plan.arms["a"]}}
    run_under_test.plan = run_under_test.plan.model_copy(update=only)
    run_under_test.execute()

    assert run_under_test.state.ended == run.ROUNDS_DONE
    assert run_under_test.state.rounds == 6


def test_round_that_would_exceed_the_time_limit_is_not_started(
    make_run: MakeRun,
) -> None:
    """A round takes 30 minutes of the 60."""
    run_under_test = make_run("r", FakeExecutor(), rounds=100)
    now = [0.0]

    def advance_clock(_round: Round, _arm: str) -> None:
        now[0] += 600

    run_under_test.executor = FakeExecutor(override=advance_clock)
    run_under_test.clock = lambda: now[0]
    run_under_test.execute()

    assert run_under_test.state.ended == run.TIME_LIMIT_REACHED
    assert run_under_test.state.rounds == 2


def test_time_limit_ends_the_plan_that_the_intervals_are_made_for(
    make_run: MakeRun,
) -> None:
    """Ten of a hundred rounds fit into the hour; the next run may have more."""
    run_under_test = make_run("r", FakeExecutor(), rounds=100)
    now = [0.0]

    def advance_clock(_round: Round, _arm: str) -> None:
        now[0] += 110

    run_under_test.executor = FakeExecutor(override=advance_clock)
    run_under_test.plan = endless(run_under_test.plan)
    run_under_test.clock = lambda: now[0]
    planned = run_under_test.state.planned_rounds
    run_under_test.execute()

    assert (planned, run_under_test.state.rounds) == (100, 10)
    assert run_under_test.folder.load_state().planned_rounds == 10


def endless(plan: Plan) -> Plan:
    """Return the plan without an end at a verdict."""
    design = plan.design.model_copy(update={"ends_at_verdict": False})
    return plan.model_copy(update={"design": design})


def test_resumed_run_goes_beyond_its_plan_up_to_a_longer_limit(
    make_run: MakeRun,
) -> None:
    """The intervals are still made for its first plan."""
    run_under_test = make_run("r", FakeExecutor(), rounds=100)
    run_under_test.plan = endless(run_under_test.plan.with_minutes(5))
    run_under_test.state.rounds = 5
    run_under_test.state.planned_rounds = 8
    run_under_test.execute()

    assert run_under_test.state.rounds == 12
    assert run_under_test.state.planned_rounds == 8


@pytest.mark.parametrize(("round_seconds", "planned"), [(20, 15), (25, 12), (60, 12)])
def test_quick_rounds_get_all_of_the_time_before_the_first_look(
    make_run: MakeRun, round_seconds: float, planned: int
) -> None:
    """A round was planned to take 25 s, so that twelve fit into five minutes."""
    run_under_test = make_run("r", FakeExecutor(), rounds=100)
    now = [0.0]

    def advance_clock(_round: Round, arm: str) -> None:
        now[0] += round_seconds * (arm == "a")

    run_under_test.executor = FakeExecutor(override=advance_clock)
    run_under_test.plan = endless(run_under_test.plan.with_minutes(5))
    run_under_test.state.planned_rounds = run_under_test.plan.planned_rounds
    run_under_test.clock = lambda: now[0]
    planned_at = {}
    run_under_test.on_round = lambda one: planned_at.update(
        {one.state.rounds: one.state.planned_rounds}
    )
    run_under_test.execute()

    assert planned_at[MIN_ROUNDS - 2] == 12
    assert planned_at[MIN_ROUNDS] == planned
    assert run_under_test.state.rounds == min(planned, 300 // round_seconds)


def test_differences_of_parts_add_up_to_that_of_the_mean(make_run: MakeRun) -> None:
    run_under_test = make_run("r", FakeExecutor())
    run_under_test.execute()

    found = analyse_run(run_under_test.folder).comparisons

    assert [one.arm for one in found] == ["b", "c"]
    for one in found:
        parts = math.fsum(part.absolute.mid for part in one.parts.values())
        assert parts == pytest.approx(one.measures["mean"].absolute.mid)


def test_warm_up_requests_are_not_counted(make_run: MakeRun) -> None:
    run_under_test = make_run("r", FakeExecutor())
    run_under_test.execute()

    counts = count_requests(run_under_test.folder.load_rows())
    assert counts["a"].requests == 6 * (REQUESTS - 2)


def test_reports_have_verdicts_warnings_and_charts_and_escape_html(
    make_run: MakeRun,
) -> None:
    run_under_test = make_run("r", FakeExecutor())
    run_under_test.plan = endless(run_under_test.plan)
    run_under_test.execute()
    report.write_reports(run_under_test.folder)
    page = (run_under_test.folder.path / "report.html").read_text()
    content = json.loads((run_under_test.folder.path / "result.json").read_text())

    assert content["comparisons"][0]["measures"]["p50"]["verdict"] == "faster"
    assert "A slice has room for 2.4 consecutive requests of a." in page
    assert "GET: where the time goes" in page
    assert "Parts that differ, in ms: SQL" in page
    assert "Is &lt;b&gt; faster?" in page
    assert "src=" not in page
    assert "href=" not in page
    assert page.count("<polyline") == 6
    assert "SQL -10.01" in page
    assert "| median |" in (run_under_test.folder.path / "report.md").read_text()


def test_report_analyses_the_samples_of_a_run_again(make_run: MakeRun) -> None:
    """Also with another smallest effect, which its plan has by now."""
    run_under_test = make_run("r", FakeExecutor())
    run_under_test.execute()
    folder = run_under_test.folder.path
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("smallest = 0.02", "smallest = 0.2"))
    result = CliRunner().invoke(main, ["experiment", "report", str(folder)])
    content = json.loads((folder / "result.json").read_text())

    assert result.exit_code == 0, result.output
    assert {one["measures"]["p50"]["verdict"] for one in content["comparisons"]} == {
        "no difference that matters"
    }
    assert content["planned_rounds"] == 6


def test_progress_has_remaining_time_and_a_line_per_arm(make_run: MakeRun) -> None:
    run_under_test = make_run("r", FakeExecutor())
    run_under_test.execute()
    output = "\n".join(describe_round(run_under_test))

    assert "min left" in output
    assert "b: -" in output
    assert "faster" in output


@pytest.mark.parametrize(("seconds", "short"), [(60, False), (3500, True)])
def test_progress_says_that_the_time_limit_is_too_short(
    make_run: MakeRun, seconds: float, *, short: bool
) -> None:
    """Arm c varies by up to 20 ms between its five rounds; the limit is 60 minutes."""

    def restless(this_round: Round, arm: str) -> run.ArmResult | None:
        more = this_round.number % 3 / 100 if arm == "c" else 0
        rows = fake_rows(this_round, arm)
        slow = [
            replace(row, latency_seconds=row.latency_seconds + more) for row in rows
        ]
        return run.ArmResult(slow)

    run_under_test = make_run("r", FakeExecutor(override=restless), rounds=5)
    run_under_test.execute()
    run_under_test.state.seconds = seconds
    run_under_test.state.latest_round_seconds = seconds / 5
    last_line = describe_round(run_under_test)[-1]

    assert "a verdict needs about" in last_line
    assert ("The time limit is shorter" in last_line) == short


def test_folder_with_a_run_is_refused_for_a_new_run(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run_under_test = make_run("r", FakeExecutor())

    with pytest.raises(RunFolderError, match="resume"):
        run_under_test.folder.create(tmp_path / "plan.toml", RunState(seed=1))
    with pytest.raises(RunFolderError, match="holds no run"):
        RunFolder(tmp_path).load_state()


def test_compare_warns_about_weaker_evidence_and_names_arms_by_run(
    make_run: MakeRun,
) -> None:
    for name in ("r", "s"):
        run_under_test = make_run(name, FakeExecutor())
        run_under_test.execute()
    folders = [str(run_under_test.folder.path.with_name(name)) for name in ("r", "s")]
    result = CliRunner().invoke(main, ["experiment", "compare", *folders])

    assert result.exit_code == 0
    assert "Weaker evidence" in result.output
    assert "s/b compared with r/a" in result.output


def test_compare_fits_80_columns_with_long_names(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"cache-backends/2026-11-22T1{n}-05-00Z" for n in range(2)]
    paths = []
    for name in names:
        run_under_test = make_run(name, FakeExecutor())
        run_under_test.execute()
        paths.append(str(run_under_test.folder.path))
    result = CliRunner().invoke(main, ["experiment", "compare", *paths])
    lines = result.output.splitlines()

    assert result.exit_code == 0, result.output
    assert max(map(len, lines)) <= 80
    assert "…" not in result.output
    assert "Base: 2026-11-22T10-05-00Z/a. Arm: 2026-11-22T11-05-00Z/b." in (
        " ".join(result.output.split())
    )


def test_compare_names_runs_by_distinct_paths_and_refuses_equal_runs(
    make_run: MakeRun, tmp_path: Path
) -> None:
    folders = []
    for name in ("r/same", "s/same"):
        run_under_test = make_run(name, FakeExecutor())
        run_under_test.execute()
        folders.append(run_under_test.folder)

    assert "s/same/b compared with r/same/a" in report.compare_runs(*folders)
    (tmp_path / "latest").symlink_to(folders[0].path)
    with pytest.raises(RunFolderError, match="are the same run"):
        report.compare_runs(folders[0], RunFolder(tmp_path / "latest"))


def test_arm_keeps_its_colour_when_another_arm_has_no_data(make_run: MakeRun) -> None:
    def fail(this_round: Round, arm: str) -> run.ArmResult | None:
        return run.ArmResult(fake_rows(this_round, arm, "500")) if arm == "a" else None

    run_under_test = make_run("r", FakeExecutor(override=fail))
    run_under_test.execute()
    report.write_reports(run_under_test.folder)
    page = (run_under_test.folder.path / "report.html").read_text()

    for number, arm in ((1, "b"), (2, "c")):
        line = rf'<polyline class="arm{number}" [^>]*><title>{arm}</title>'
        assert len(re.findall(line, page)) == 2


def test_report_without_a_complete_round_has_no_charts(make_run: MakeRun) -> None:
    def interrupt(_round: Round, _arm: str) -> None:
        raise KeyboardInterrupt

    run_under_test = make_run("r", FakeExecutor(override=interrupt))
    run_under_test.execute()
    report.write_reports(run_under_test.folder)
    page = (run_under_test.folder.path / "report.html").read_text()

    assert page.count("No data: no round is complete.") == 2
    assert "<figcaption>" not in page
    assert "from 0 to 1" not in page


@pytest.mark.parametrize("code", ["200", "500"])
def test_resume_fails_when_every_request_failed(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    def answer(this_round: Round, arm: str) -> run.ArmResult:
        return run.ArmResult(
            fake_rows(this_round, arm, code), ["503 Service Unavailable"]
        )

    run_under_test = make_run("r", FakeExecutor())
    fake = FakeExecutor(override=answer)
    monkeypatch.setenv("KEYLAG_STATE", str(tmp_path))
    monkeypatch.setattr(experiment, "make_executor", lambda *_: fake)
    arguments = ["resume", str(run_under_test.folder.path)]
    result = CliRunner().invoke(main, ["experiment", *arguments])

    assert result.exit_code == (code == "500"), result.output
    output = f"Error: {run_under_test.folder.path}: the base or every other arm failed"
    assert (output in result.output) == (code == "500")


def test_rows_of_an_unfinished_round_are_ignored(make_run: MakeRun) -> None:
    run_under_test = make_run("r", FakeExecutor())
    run_under_test.execute()
    folder = run_under_test.folder
    before = folder.load_rows()
    last = folder.samples_path.read_text().splitlines()[-1]
    with folder.samples_path.open("a") as stream:
        stream.write(f"{last}\r\n{last[:20]}")

    assert folder.load_rows() == before
    assert analyse_run(folder).request_counts == count_requests(before)


def test_time_limit_of_a_run_overrides_its_plan(make_run: MakeRun) -> None:
    """plan.toml stays unchanged."""
    run_under_test = make_run("r", FakeExecutor())
    folder = run_under_test.folder
    folder.save_state(replace(folder.load_state(), minutes=7.5))

    assert folder.load_plan().design.minutes == 7.5
    assert "minutes = 60" in (folder.path / "plan.toml").read_text()


def test_resume_refuses_a_time_limit_below_five_rounds(make_run: MakeRun) -> None:
    folder = make_run("r", FakeExecutor()).folder
    arguments = ["resume", str(folder.path), "--minutes", "0.5"]
    result = CliRunner().invoke(main, ["experiment", *arguments])

    assert result.exit_code == 2
    assert "--minutes 0.5: too short: a verdict needs 5 rounds, 35 s" in (result.output)
    assert folder.load_state().minutes is None


def test_resume_refuses_an_end_that_is_chosen_after_a_look(make_run: MakeRun) -> None:
    run_under_test = make_run("r", FakeExecutor())
    run_under_test.execute()
    folder = run_under_test.folder
    arguments = ["resume", str(folder.path), "--minutes", "10"]
    result = CliRunner().invoke(main, ["experiment", *arguments])

    assert result.exit_code == 2
    assert "--minutes 10 is less than the limit of the run, 60" in result.output
    assert folder.load_state().minutes is None


def test_outlook_has_the_half_width_of_the_widest_open_interval(
    make_run: MakeRun,
) -> None:
    """The median of c varies by up to 20 ms between rounds."""

    def restless(this_round: Round, arm: str) -> run.ArmResult | None:
        if arm != "c":
            return None
        rows = fake_rows(this_round, arm)
        more = this_round.number % 3 / 100
        return run.ArmResult(
            [replace(row, latency_seconds=row.latency_seconds + more) for row in rows]
        )

    run_under_test = make_run("r", FakeExecutor(override=restless), rounds=5)
    run_under_test.execute()
    found = analyse_run(run_under_test.folder)
    (still_open,) = [
        one.measures["p50"]
        for one in found.comparisons
        if one.measures["p50"].verdict == "cannot tell yet"
    ]

    half = (still_open.relative.high - still_open.relative.low) / 2
    assert f"The widest undecided interval is ± {100 * half:.1f} %:" in found.outlook


def test_forecast_has_rounds_time_and_detectable_difference(make_run: MakeRun) -> None:
    """A round of three arms takes 7 s of load and 18 s of restarts."""
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
    assert "Time: about 17 min, at most 60, after all arms have started" in output
    assert "Found in half of the runs: a difference of 0.4 times" in output
    assert "no difference, with so few rounds" in "\n".join(
        forecast.describe_plan(plan.with_minutes(1))
    )


def test_forecast_says_what_the_smallest_effect_of_a_part_is(make_run: MakeRun) -> None:
    plan = make_run("r", FakeExecutor()).plan
    decision = plan.decision.model_copy(update={"measure": "sql", "smallest": 0.03})
    output = forecast.describe_plan(plan.model_copy(update={"decision": decision}))

    assert (
        "Decision: SQL in the mean of GET; differences below 3.0 % of the mean do not "
        "matter"
    ) in output


@pytest.mark.stack
def test_dry_run_prints_the_forecast_and_creates_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEYLAG_STATE", str(state_folder()))
    path = PLANS_FOLDER / "same.toml"
    result = CliRunner().invoke(
        main, ["experiment", "run", str(path), "--dry-run", "--minutes", "20"]
    )

    assert result.exit_code == 0, result.output
    assert "at most 20, after all arms" in result.output
    assert "nothing was started" in result.output
    assert list(tmp_path.iterdir()) == []

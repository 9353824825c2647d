"""The first rounds of a run measure the noise, and may end it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from fake_experiment import FakeExecutor, MakeRun, fake_rows

from keylag import processes
from keylag.cli import main
from keylag.commands import experiment
from keylag.experiment import load_monitor, messages, option_checks, report, run
from keylag.experiment.load_monitor import Disturbance, LoadMonitor, combine
from keylag.experiment.noise import QUARTERS, estimate_spread, split_into_quarters
from keylag.experiment.noise_check import (
    MAX_CHECK_ROUNDS,
    NoiseChecker,
    load_noise_check,
)
from keylag.experiment.obstacles import (
    find_disturbed_rounds,
    find_obstacles_under_load,
)
from keylag.experiment.plan import Decision
from keylag.experiment.progress import describe_round
from keylag.experiment.saturation import count_clients, find_saturated_arms
from keylag.experiment.schedule import Round
from keylag.experiment.stack_setup import PLANS_FOLDER

HEALTHY = Disturbance(10.0, 0.05, 0.01, 0.0, (3.0, 3.1))
SPREAD = 0.03


def noisy(this_round: Round, arm: str) -> run.ArmResult | None:
    """Return requests of b and c whose latencies double in every other round."""
    if arm == "a" or this_round.number % 2:
        return None
    rows = fake_rows(this_round, arm)
    slow = [replace(row, latency_seconds=2 * row.latency_seconds) for row in rows]
    return run.ArmResult(slow)


def with_noise_check(found: run.ExperimentRun, *, may_stop: bool) -> run.ExperimentRun:
    """Return the run with a noise check on processor 0."""
    monitor = LoadMonitor(found.folder.path, [0])
    found.noise_checker = NoiseChecker(found.plan, monitor, may_stop)
    return found


def test_noise_check_ends_a_run_whose_noise_leaves_no_chance(make_run: MakeRun) -> None:
    noisy_run = with_noise_check(
        make_run("r", FakeExecutor(override=noisy)), may_stop=True
    )
    noisy_run.execute()
    report.write_reports(noisy_run.folder)
    content = json.loads((noisy_run.folder.path / "result.json").read_text())

    assert noisy_run.state.ended == run.OUT_OF_REACH
    assert noisy_run.state.rounds == MAX_CHECK_ROUNDS
    assert "b: an interval of ± 2.0 % takes about" in noisy_run.state.events[-1]
    assert content["noise_check"] == noisy_run.state.noise_check
    assert content["noise_check"]["rounds"] == MAX_CHECK_ROUNDS
    for name in ("report.md", "report.html"):
        text = (noisy_run.folder.path / name).read_text()
        assert "After 4 rounds, by the noise until then" in text


def test_noisy_arms_that_are_far_from_the_base_are_in_reach(make_run: MakeRun) -> None:
    def far(this_round: Round, arm: str) -> run.ArmResult | None:
        found = noisy(this_round, arm) or run.ArmResult(fake_rows(this_round, arm))
        if arm == "a":
            return None
        rows = [
            replace(row, latency_seconds=9 * row.latency_seconds) for row in found.rows
        ]
        return run.ArmResult(rows)

    far_run = with_noise_check(make_run("r", FakeExecutor(override=far)), may_stop=True)
    far_run.execute()

    assert far_run.state.ended != run.OUT_OF_REACH
    check = load_noise_check(far_run.folder.load_state())
    assert check
    assert all(one.rounds > check.forecast.last_round for one in check.forecast.arms)


def test_noisy_run_goes_on_if_told_and_keeps_the_forecast(make_run: MakeRun) -> None:
    told = with_noise_check(make_run("r", FakeExecutor(override=noisy)), may_stop=False)
    told.execute()

    assert told.state.ended == run.ROUNDS_DONE
    assert load_noise_check(told.folder.load_state()).forecast.is_out_of_reach


def test_resumed_run_keeps_its_rounds_and_repeats_no_check(make_run: MakeRun) -> None:
    stopped = with_noise_check(
        make_run("r", FakeExecutor(override=noisy)), may_stop=True
    )
    stopped.execute()
    resumed = with_noise_check(
        make_run("r", FakeExecutor(override=noisy)), may_stop=True
    )
    resumed.execute()

    assert resumed.state.ended == run.ROUNDS_DONE
    assert resumed.state.rounds == 6
    assert resumed.state.noise_check == json.loads(
        json.dumps(stopped.state.noise_check)
    )


@pytest.mark.matrix
def test_quiet_run_goes_on_to_its_verdicts(make_run: MakeRun) -> None:
    quiet = with_noise_check(make_run("r", FakeExecutor(), rounds=500), may_stop=True)
    quiet.execute()
    check = load_noise_check(quiet.folder.load_state())

    assert quiet.state.ended == run.ALL_VERDICTS_REACHED
    assert [one.arm for one in check.forecast.arms] == ["b", "c"]
    assert all(one.rounds <= 500 for one in check.forecast.arms)
    assert not any(one.out_of_reach for one in check.forecast.arms)


def test_noise_check_lasts_a_minute(make_run: MakeRun) -> None:
    """A round takes 40 seconds."""
    now = [0.0]

    def advance_clock(_round: Round, arm: str) -> None:
        now[0] += 40 * (arm == "a")

    timed = with_noise_check(
        make_run("r", FakeExecutor(override=advance_clock)), may_stop=1
    )
    timed.clock = lambda: now[0]
    timed.execute()

    assert load_noise_check(timed.state).rounds == 2
    assert load_noise_check(timed.state).forecast.round_seconds == 40


def test_run_without_time_for_a_verdict_is_ended(make_run: MakeRun) -> None:
    """A round takes 20 minutes of the 60."""
    now = [0.0]

    def advance_clock(_round: Round, arm: str) -> None:
        now[0] += 1200 * (arm == "a")

    slow = with_noise_check(
        make_run("r", FakeExecutor(override=advance_clock)), may_stop=True
    )
    slow.clock = lambda: now[0]
    slow.execute()

    assert slow.state.ended == run.OUT_OF_REACH
    expected = "The run has 3 rounds of 1200 s; a verdict needs 5."
    assert expected in slow.state.events[-1]


def test_progress_has_the_forecast_before_the_first_look(make_run: MakeRun) -> None:
    told = make_run("r", FakeExecutor())
    lines = []
    told.on_round = lambda so_far: lines.append("\n".join(describe_round(so_far)))
    told.execute()

    assert "b: an interval of ± 2.0 % takes about" in lines[1]
    assert "with an interval from round 5 on" in lines[3]
    assert "takes about" not in lines[4]
    assert "a verdict" in lines[4]


@pytest.mark.parametrize("options", [[], ["--anyway"]])
def test_command_ends_without_a_chance_unless_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    def restless(this_round: Round, arm: str) -> run.ArmResult:
        known = {"base": "a", "again": "b"}[arm]
        renamed = replace(this_round, arms=list("ab"))
        found = noisy(renamed, known) or run.ArmResult(fake_rows(renamed, known))
        return run.ArmResult([replace(row, arm=arm) for row in found.rows])

    fake = FakeExecutor(override=restless)
    monkeypatch.setenv("KEYLAG_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(option_checks, "check_plan", lambda *_: None)
    environment = {"busy_before": 0.0, "arms": {}}
    monkeypatch.setattr(experiment, "collect", lambda _plan: environment)
    monkeypatch.setattr(experiment, "make_executor", lambda *_: fake)
    arguments = [str(PLANS_FOLDER / "same.toml"), f"--out={tmp_path / 'out'}"]
    result = CliRunner().invoke(main, ["experiment", "run", *arguments, *options])

    assert result.exit_code == (0 if options else 1), result.output
    advice = f"`keylag experiment resume {tmp_path / 'out'}` goes on anyway."
    assert (advice in result.output) == (not options)


@pytest.mark.parametrize("rounds", [2, 3, 4])
def test_spread_is_that_of_rounds_and_rarely_above_its_lower_bound(
    rounds: int,
) -> None:
    """Half of the variance is shared by the quarters of a round."""
    rng = np.random.default_rng(rounds)
    found = [estimate_spread(*draw(rng, rounds)) for _ in range(500)]

    assert np.median([one.estimate for one in found]) == pytest.approx(SPREAD, rel=0.25)
    assert np.mean([one.low > SPREAD for one in found]) < 0.15


def draw(rng: np.random.Generator, rounds: int) -> Iterator[tuple[list[float], None]]:
    """Yield the values of rounds, and of their quarters."""
    own = SPREAD / 2**0.5
    restarts = rng.normal(0, own, rounds).repeat(QUARTERS)
    quarters = restarts + rng.normal(0, own * QUARTERS**0.5, QUARTERS * rounds)
    yield quarters.reshape(rounds, QUARTERS).mean(axis=1).tolist(), None
    yield quarters.tolist(), None


def test_spread_is_without_what_the_control_explains() -> None:
    rng = np.random.default_rng(1)
    control = rng.normal(0.5, 0.1, 40)
    values = 3 * control + rng.normal(0, SPREAD, 40)
    rounds = (values.tolist(), control.tolist())

    assert estimate_spread(rounds, ([], None)).estimate == pytest.approx(
        SPREAD, rel=0.3
    )
    assert estimate_spread(([0.1], None), ([], None)) is None


def test_quarters_are_numbered_as_rounds_and_have_no_warm_up() -> None:
    quarters = split_into_quarters(fake_rows(Round(3, ["a"], 1), "a"))

    assert [row.round for row in quarters] == [12, 12, 12, 13, 13, 14, 14, 14, 15, 15]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("other_programs", 0.43, "other programs used 43% of the processors' time"),
        ("stolen", 0.2, "gave 20% of the processors' time to other virtual machines"),
        ("swapped_mib", 30.0, "swapped 30 MiB in 10 s"),
        ("ghz", (2.1, 3.4), "frequency changed from 2.1 to 3.4 GHz"),
    ],
)
def test_each_disturbance_under_load_is_an_obstacle(
    name: str, value: object, text: str
) -> None:
    [found] = find_obstacles_under_load(replace(HEALTHY, **{name: value}))

    assert text in found
    assert not list(find_obstacles_under_load(HEALTHY))
    assert not list(find_obstacles_under_load(Disturbance()))


def test_disturbances_of_rounds_are_combined_by_their_time() -> None:
    busy = replace(HEALTHY, seconds=30.0, other_programs=0.25, ghz=(2.8, 3.0))
    both = combine([HEALTHY, busy])

    assert both == Disturbance(40.0, 0.2, 0.01, 0.0, (2.8, 3.1))
    assert combine([]) == Disturbance()
    unknown = replace(HEALTHY, other_programs=None)
    assert combine([HEALTHY, unknown]).other_programs is None


def test_one_warning_tells_of_all_disturbed_rounds() -> None:
    busy = replace(HEALTHY, other_programs=0.43)
    swapping = replace(HEALTHY, swapped_mib=30.0)
    [found] = find_disturbed_rounds([HEALTHY, busy, HEALTHY, swapping])

    assert "in 2 of 4 rounds, first in round 2. Under load, other programs" in found
    assert not list(find_disturbed_rounds([HEALTHY, HEALTHY]))


def test_report_says_how_idle_the_machine_was_in_each_round(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = iter([0.02] * 5 + [0.5])
    monkeypatch.setattr(
        LoadMonitor,
        "_between",
        lambda *_: replace(HEALTHY, other_programs=next(shares)),
    )
    watched = with_noise_check(
        make_run("r", FakeExecutor(override=noisy)), may_stop=False
    )
    lines = []
    watched.on_round = lambda so_far: lines.append("\n".join(describe_round(so_far)))
    watched.execute()
    report.write_reports(watched.folder)
    content = json.loads((watched.folder.path / "result.json").read_text())

    found = [one["other_programs"] for one in content["disturbances"]]
    assert found == [0.02] * 5 + [0.5]
    assert "disturbed in 1 of 6 rounds, first in round 6" in str(content["warnings"])
    assert "other programs used 50%" in lines[5]
    assert not any("other programs" in text for text in lines[:5])
    for name in ("report.md", "report.html"):
        text = (watched.folder.path / name).read_text()
        assert "other programs used 10.0 % of the processors" in text
        assert "50.0 % in the worst round" in text
    assert messages.describe_other_programs([]) == ""


BURN = """
import time
end = time.process_time() + 0.3
while time.process_time() < end: pass
"""


def test_processes_of_the_experiment_are_no_other_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is a child that ends, as JMeter does, and one belongs to a stack."""
    times = iter([(100.0, 5.0), (102.0, 5.5)])

    def cpu_times(*, percpu: bool) -> list[SimpleNamespace]:
        assert percpu
        user, steal = next(times)
        fields = {"user": user, "idle": 9.0, "steal": steal, "guest": 50.0}
        return [SimpleNamespace(_asdict=lambda: fields)]

    monkeypatch.setattr(load_monitor.psutil, "cpu_times", cpu_times)
    monitor = LoadMonitor(tmp_path, [0])
    server_code = f"input()\n{BURN}\nprint(flush=True)\ninput()"
    environment = processes.stack_variables(tmp_path / "arm", "keystone")
    with subprocess.Popen(
        [sys.executable, "-c", server_code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as server:
        assert server.stdin
        assert server.stdout
        with monitor.watch():
            server.stdin.write(b"\n")
            server.stdin.flush()
            subprocess.run([sys.executable, "-c", BURN], check=True)
            server.stdout.readline()
        server.kill()
    found = monitor.latest

    assert 0 < found.other_programs * found.seconds < 2 - 0.5
    assert found.stolen * found.seconds == pytest.approx(0.5, abs=0.1)
    assert found.ghz is None


def test_frequency_is_that_of_the_fastest_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_monitor, "CPU_FOLDER", tmp_path)
    monkeypatch.setattr(load_monitor, "SAMPLE_SECONDS", 0.001)
    for number, khz in enumerate((3_400_000, 2_100_000)):
        file = tmp_path / f"cpu{number}" / load_monitor.FREQUENCY_FILE
        file.parent.mkdir(parents=True)
        file.write_text(f"{khz}\n")
    monitor = LoadMonitor(None, [0, 1])
    with monitor.watch():
        while not monitor._ghz:
            pass

    assert monitor.latest.ghz == (3.4, 3.4)
    assert monitor.latest.other_programs is None


@pytest.mark.parametrize(
    ("measure", "workers", "saturated"),
    [("p50", 2, True), ("p50", 10, False), ("throughput", 2, False)],
)
def test_arm_is_saturated_if_clients_wait_for_its_workers(
    make_run: MakeRun, measure: str, workers: int, *, saturated: bool
) -> None:
    plan = make_run("r", FakeExecutor()).plan
    decision = Decision(measure=measure, method="GET")
    base = plan.arms["a"].model_copy(update={"processes": workers})
    plan = plan.model_copy(update={"decision": decision, "arms": {"a": base}})
    figures = {"a": {0: {"outside": 0.08, "mean": 0.1}}}
    found = list(find_saturated_arms(plan, figures))

    assert count_clients(plan, "a") == 10
    assert len(found) == saturated
    assert all("sends 10 at a time, and the arm serves 2" in text for text in found)


def test_noise_check_survives_its_run_file(make_run: MakeRun) -> None:
    quiet = with_noise_check(make_run("r", FakeExecutor()), may_stop=True)
    quiet.execute()
    check = load_noise_check(quiet.folder.load_state())

    assert (
        json.loads(json.dumps(asdict(check))) == quiet.folder.load_state().noise_check
    )

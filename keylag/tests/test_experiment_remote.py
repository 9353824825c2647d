"""Experiments on a remote Keystone: switch commands, annotations in Grafana."""

import csv
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner
from fake_experiment import FakeExecutor, MakeRun
from fake_keystone import password_of, running
from rich.console import Console

from keylag.cli import main
from keylag.experiment import grafana_snapshot, plan_parser
from keylag.experiment.environment import instrumentation_cost
from keylag.experiment.grafana_annotations import AnnotatingExecutor, annotate_verdicts
from keylag.experiment.grafana_api import TOKEN_VARIABLE
from keylag.experiment.grafana_snapshot import keep_snapshot
from keylag.experiment.remote import SwitchedExecutor
from keylag.experiment.result import analyse_run
from keylag.experiment.run import ArmResult
from keylag.experiment.schedule import Round
from keylag.experiment.shell_command import run_command
from keylag.launcher import StackError
from keylag.users_csv import COLUMNS

PLAN = """\
question = "Which?"
base = "a"
remote = {{ url = "{url}/v3", users = "{folder}/users.csv" }}
[load]
plan = "token-issue"
properties = {{ threads = 1, rate_per_second = 50 }}
[design]
warm_up_seconds = 0
turn_seconds = 2
[decision]
method = "POST"
[arms.a]
switch = "echo a >>{folder}/switched"
[arms.b]
switch = "echo b >>{folder}/switched"
[arms.broken]
switch = "echo no such thing >&2; exit 3"
"""
ROUND = Round(0, ["broken", "b"], 1)


def write_users(folder: Path) -> None:
    """Write the file of users that the plan names."""
    with (folder / "users.csv").open("w", newline="", encoding="utf-8") as stream:
        users = csv.writer(stream)
        users.writerow(COLUMNS)
        users.writerow(["someone", password_of("someone"), "D", "demo", "D"])


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[SwitchedExecutor]:
    """Return an executor on a fake Keystone."""
    write_users(tmp_path)
    with running() as keystone:
        path = tmp_path / "plan.toml"
        path.write_text(PLAN.format(url=keystone.url, folder=tmp_path))
        plan = plan_parser.read_plan(path)
        assert plan.remote
        yield SwitchedExecutor(plan, plan.remote)


def test_base_is_switched_first_and_last_and_failed_switch_sends_no_load(
    executor: SwitchedExecutor, tmp_path: Path
) -> None:
    executor.start()
    results = executor.run_round(ROUND, tmp_path / "jmeter")
    executor.stop()
    rows = results["b"].rows

    assert (tmp_path / "switched").read_text().split() == ["a", "b", "a"]
    assert {(row.arm, row.method, row.success) for row in rows} == {("b", "POST", True)}
    assert rows[0].server_timing["total"] == pytest.approx(0.01)
    assert results["broken"].rows == []
    assert "status 3. Output: no such thing" in results["broken"].problems[0]


def test_a_keystone_is_warm_before_the_first_turn_that_counts(
    executor: SwitchedExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def send(
        _: object, __: Round, targets: Mapping[str, object], ___: Path
    ) -> dict[str, ArmResult]:
        sent.extend(targets)
        return dict.fromkeys(targets, ArmResult([]))

    monkeypatch.setattr("keylag.experiment.interleaved_load.run_load", send)
    executor.start()

    results = [executor.run_round(ROUND, tmp_path) for _ in range(2)]

    assert sent == ["a", "b", "b"]
    assert [set(one) for one in results] == 2 * [{"b", "broken"}]


LEAVE_PROCESS = "sleep 1000 & echo $! >{folder}/pid"


@pytest.fixture
def pid_file(tmp_path: Path) -> Iterator[Path]:
    """Return a file for the pid of a process that a command leaves; kills it."""
    path = tmp_path / "pid"
    yield path
    if path.exists() and psutil.pid_exists(number := int(path.read_text())):
        os.kill(number, signal.SIGKILL)


def is_alive(pid_file: Path) -> bool:
    """Return whether a process still runs after at most ten seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            process = psutil.Process(int(pid_file.read_text()))
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
        except psutil.NoSuchProcess:
            return False
        time.sleep(0.05)
    return True


def test_switch_returns_while_its_child_keeps_the_output_open(pid_file: Path) -> None:
    run_command(LEAVE_PROCESS.format(folder=pid_file.parent))

    process = psutil.Process(int(pid_file.read_text()))
    assert process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("own_session", ["", "setsid "])
def test_switch_that_times_out_is_killed_with_its_session(
    pid_file: Path, monkeypatch: pytest.MonkeyPatch, own_session: str
) -> None:
    monkeypatch.setattr("keylag.experiment.shell_command.TIMEOUT_SECONDS", 3.0)
    command = own_session + LEAVE_PROCESS.format(folder=pid_file.parent)

    with pytest.raises(StackError, match=r"timed out .* Output: so far\n"):
        run_command(f"echo so far; {command}; wait")

    if not own_session:
        assert not is_alive(pid_file)


@contextmanager
def interrupted(after_seconds: float, again_after: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in the body, as Ctrl-C does; 0 is never."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, after_seconds, again_after)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_switch_ends_after_an_interruption(tmp_path: Path) -> None:
    """Half a restart would leave the operator's Keystone down."""
    with pytest.raises(KeyboardInterrupt), interrupted(0.5, 0):
        run_command(f"sleep 2; touch {tmp_path}/restarted")

    assert (tmp_path / "restarted").exists()


def test_what_an_interrupted_switch_has_started_keeps_running(pid_file: Path) -> None:
    """It may be the operator's Keystone."""
    command = LEAVE_PROCESS.format(folder=pid_file.parent)

    with pytest.raises(KeyboardInterrupt), interrupted(1, 0):
        run_command(f"{command}; sleep 2")

    process = psutil.Process(int(pid_file.read_text()))
    assert process.status() != psutil.STATUS_ZOMBIE


def test_second_interruption_kills_a_switch_and_its_children(pid_file: Path) -> None:
    """Ctrl-C does not reach the session of the command."""
    command = LEAVE_PROCESS.format(folder=pid_file.parent)

    with pytest.raises(KeyboardInterrupt), interrupted(3, 1):
        run_command(f"{command}; wait")

    assert not is_alive(pid_file)


def test_switch_has_an_empty_standard_input(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"status 1. Output: $"):
        run_command("read answer")


class FakeGrafana(HTTPServer):
    """Records requests, and answers with a status code."""

    def __init__(self, code: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.code = code
        self.requests: list[tuple[str, str | None, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: FakeGrafana

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, self.headers["Authorization"], body))
        self.respond(self.server.code, {})

    def do_GET(self) -> None:
        self.respond(200, {"defaultDatasource": "", "datasources": {}})

    def respond(self, code: int, content: object) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def grafana(request: pytest.FixtureRequest) -> Iterator[FakeGrafana]:
    """Return a server that answers with the status code of the test."""
    server = FakeGrafana(request.param)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def annotating_executor(grafana: FakeGrafana) -> AnnotatingExecutor:
    """Return an executor that annotates in the fake Grafana."""
    return AnnotatingExecutor(
        FakeExecutor(), f"http://127.0.0.1:{grafana.server_address[1]}/"
    )


@pytest.mark.parametrize("grafana", [200], indirect=True)
def test_each_arm_of_a_round_is_annotated_as_a_region(
    grafana: FakeGrafana, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    results = annotating_executor(grafana).run_round(Round(4, ["c", "b"], 1), tmp_path)
    first, (path, authorization, annotation) = grafana.requests

    assert (path, authorization) == ("/api/annotations", "Bearer secret")
    assert annotation["tags"] == ["keylag", "experiment", "b"]
    assert (first[2]["text"], annotation["text"]) == ("c, round 4", "b, round 4")
    assert (annotation["time"], annotation["timeEnd"]) == (1_000_000, 1_001_196)
    assert results["b"].problems == []


@pytest.mark.parametrize("grafana", [401], indirect=True)
def test_annotations_stop_after_the_first_failure(
    grafana: FakeGrafana, tmp_path: Path
) -> None:
    results = annotating_executor(grafana).run_round(Round(0, ["a", "b"], 1), tmp_path)

    assert len(grafana.requests) == 1
    assert results["a"].problems == [
        "writing to Grafana failed, so annotations are off from now on: HTTPError 401"
    ]
    assert results["b"].problems == []


@pytest.mark.parametrize("grafana", [200], indirect=True)
def test_verdicts_are_an_annotation_over_the_time_of_the_run(
    grafana: FakeGrafana, make_run: MakeRun
) -> None:
    run = make_run("r", FakeExecutor())
    run.execute()
    verdicts = analyse_run(run.folder).headlines
    annotate_verdicts(run, f"http://127.0.0.1:{grafana.server_address[1]}", verdicts)
    annotate_verdicts(run, "http://127.0.0.1:9", verdicts)
    [(_, _, annotation)] = grafana.requests

    assert annotation["tags"] == ["keylag", "experiment", "verdict"]
    assert annotation["text"].startswith("b: ")
    assert "\nc: " in annotation["text"]
    assert annotation["time"] == round(run.rows[0].start_seconds * 1000)
    assert annotation["timeEnd"] > annotation["time"]
    assert run.folder.load_state().events == ["no verdicts in Grafana: ConnectionError"]


@pytest.mark.parametrize("grafana", [200], indirect=True)
def test_missing_snapshot_is_a_problem_of_the_run(
    grafana: FakeGrafana, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grafana_snapshot, "SETTLE_SECONDS", 0)
    run = make_run("r", FakeExecutor())
    run.execute()
    quiet = Console(quiet=True)
    for port in (grafana.server_address[1], 9):
        url = f"http://admin:secret@127.0.0.1:{port}"
        keep_snapshot(run, url, [], quiet, has_metrics=True)
    keep_snapshot(run, "http://127.0.0.1:9", [], quiet, has_metrics=False)

    assert run.folder.load_state().events == [
        "no snapshot in Grafana: it has no data source of the type Prometheus.",
        "no snapshot in Grafana: ConnectionError",
        "no snapshot in Grafana: it shows the arms' metrics, which --otlp sends.",
    ]
    assert run.state.snapshot_url == ""


def test_otlp_for_a_remote_keystone_is_refused(tmp_path: Path) -> None:
    write_users(tmp_path)
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(url="http://127.0.0.1:9", folder=tmp_path))
    words = ["experiment", "run", str(path), "--otlp", "http://127.0.0.1:4318"]

    done = CliRunner().invoke(main, words)

    assert done.exit_code == 2
    assert "--otlp has no effect on a remote Keystone" in done.output


def test_keystone_that_does_not_answer_after_a_switch_raises(
    executor: SwitchedExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keylag.experiment.remote_access.ANSWER_TIMEOUT_SECONDS", 0)
    monkeypatch.setattr(executor, "_url", "http://127.0.0.1:9/v3")

    with pytest.raises(StackError, match="9/v3 did not answer"):
        executor.start()


def test_instrumentation_cost_cites_the_result_of_make_bench(tmp_path: Path) -> None:
    path = tmp_path / "overhead.json"
    before = instrumentation_cost(path)
    ratio = {"cpu_ratio": [1.01, 1.02, 1.03]}
    none = {"cpu_ratio": [None, 1.02, None]}
    known = {"get": {"keylag": ratio}, "post": {"keylag": none}}
    path.write_text(json.dumps({"workloads": known}))

    assert (
        before == "not measured on this machine; `make bench` in a checkout measures it"
    )
    assert instrumentation_cost(path).endswith("make bench: get 1.020 [1.010, 1.030]")
    path.write_text(json.dumps({"workloads": {"post": {"keylag": none}}}))
    assert instrumentation_cost(path) == before  # one restart has no interval to cite

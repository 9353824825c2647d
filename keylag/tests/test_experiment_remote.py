"""A Keystone that is not ours: switched by commands, marked in Grafana."""

import csv
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from fake_experiment import FakeExecutor
from fake_keystone import password_of, running

from keylag.experiment import plan_parser
from keylag.experiment.environment import instrumentation_cost
from keylag.experiment.grafana_annotations import TOKEN_VARIABLE, AnnotatingExecutor
from keylag.experiment.remote import RemoteExecutor, run_switch
from keylag.experiment.schedule import Round
from keylag.launch import StackError
from keylag.users import COLUMNS

PLAN = """\
question = "Which?"
base = "a"
elsewhere = {{ url = "{url}/v3", users = "{folder}/users.csv" }}
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


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[RemoteExecutor]:
    """Give an executor on a Keystone of the tests."""
    with (tmp_path / "users.csv").open("w", newline="", encoding="utf-8") as stream:
        users = csv.writer(stream)
        users.writerow(COLUMNS)
        users.writerow(["someone", password_of("someone"), "D", "demo", "D"])
    with running() as keystone:
        path = tmp_path / "plan.toml"
        path.write_text(PLAN.format(url=keystone.url, folder=tmp_path))
        plan = plan_parser.read_plan(path)
        assert plan.elsewhere
        yield RemoteExecutor(plan, plan.elsewhere)


def test_arms_are_switched_to_and_loaded(
    executor: RemoteExecutor, tmp_path: Path
) -> None:
    """The base comes first and last; after a switch that fails nothing is loaded."""
    executor.start()
    results = executor.run_round(ROUND, tmp_path / "jmeter")
    executor.stop()
    rows = results["b"].rows

    assert (tmp_path / "switched").read_text().split() == ["a", "b", "a"]
    assert {(row.arm, row.method, row.success) for row in rows} == {("b", "POST", True)}
    assert rows[0].server_timing["total"] == pytest.approx(0.01)
    assert results["broken"].rows == []
    assert "status 3. It said: no such thing" in results["broken"].problems[0]


LEAVE_PROCESS = "sleep 1000 & echo $! >{folder}/pid"


@pytest.fixture
def pid_file(tmp_path: Path) -> Iterator[Path]:
    """Give the file where a command writes which process it leaves; ended here."""
    path = tmp_path / "pid"
    yield path
    if path.exists() and psutil.pid_exists(number := int(path.read_text())):
        os.kill(number, signal.SIGKILL)


def is_alive(pid_file: Path) -> bool:
    """Tell whether a process still runs; give it a moment to end."""
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


def test_a_switch_may_leave_a_process_with_its_output_open(pid_file: Path) -> None:
    """As one that starts Keystone does: it goes on, and the process stays."""
    run_switch(LEAVE_PROCESS.format(folder=pid_file.parent))

    process = psutil.Process(int(pid_file.read_text()))
    assert process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("own_session", ["", "setsid "])
def test_a_switch_that_never_ends_is_an_error(
    pid_file: Path, monkeypatch: pytest.MonkeyPatch, own_session: str
) -> None:
    """Whatever its processes do; all that did not leave its session are ended."""
    monkeypatch.setattr("keylag.experiment.remote.SWITCH_TIMEOUT_SECONDS", 3.0)
    command = own_session + LEAVE_PROCESS.format(folder=pid_file.parent)

    with pytest.raises(StackError, match=r"timed out .* It said: so far\n"):
        run_switch(f"echo so far; {command}; wait")

    if not own_session:
        assert not is_alive(pid_file)


def test_an_interrupted_switch_is_ended(pid_file: Path) -> None:
    """Ctrl-C does not reach its session, so it is ended with all it has started."""
    command = LEAVE_PROCESS.format(folder=pid_file.parent)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 3)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_switch(f"{command}; wait")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert not is_alive(pid_file)


def test_a_switch_cannot_ask(tmp_path: Path) -> None:
    """Its input is empty: it fails at once instead of waiting for an answer."""
    with pytest.raises(StackError, match=r"status 1. It said: $"):
        run_switch("read answer")


class Grafana(HTTPServer):
    """Keeps what it is told, and answers with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.code = code
        self.requests: list[tuple[str, str | None, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Grafana

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, self.headers["Authorization"], body))
        self.send_response(self.server.code)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def grafana(request: pytest.FixtureRequest) -> Iterator[Grafana]:
    """Give a server that answers with the test's code."""
    server = Grafana(request.param)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def annotating_executor(grafana: Grafana) -> AnnotatingExecutor:
    """Return an executor that tells the server."""
    return AnnotatingExecutor(
        FakeExecutor(), f"http://127.0.0.1:{grafana.server_address[1]}/"
    )


@pytest.mark.parametrize("grafana", [200], indirect=True)
def test_arms_are_marked_with_their_block(
    grafana: Grafana, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As regions of time, by Grafana's own interface."""
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    results = annotating_executor(grafana).run_round(Round(4, ["c", "b"], 1), tmp_path)
    first, (path, authorization, annotation) = grafana.requests

    assert (path, authorization) == ("/api/annotations", "Bearer secret")
    assert annotation["tags"] == ["keylag", "experiment", "b"]
    assert (first[2]["text"], annotation["text"]) == ("c, round 4", "b, round 4")
    assert (annotation["time"], annotation["timeEnd"]) == (1_000_000, 1_001_196)
    assert results["b"].problems == []


@pytest.mark.parametrize("grafana", [401], indirect=True)
def test_a_grafana_that_refuses_is_asked_once(grafana: Grafana, tmp_path: Path) -> None:
    """The run goes on, and says so once."""
    results = annotating_executor(grafana).run_round(Round(0, ["a", "b"], 1), tmp_path)

    assert len(grafana.requests) == 1
    assert results["a"].problems == [
        "Grafana took no mark, and is asked no more: HTTPError 401"
    ]
    assert results["b"].problems == []


def test_a_keystone_that_never_answers_is_an_error(
    executor: RemoteExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some patience."""
    monkeypatch.setattr("keylag.experiment.remote.ANSWER_TIMEOUT_SECONDS", 0)
    gone = executor._remote.model_copy(update={"url": "http://127.0.0.1:9/v3"})

    with pytest.raises(StackError, match="9/v3 did not answer"):
        RemoteExecutor(executor._plan, gone).start()


def test_the_cost_of_keylag_is_cited(tmp_path: Path) -> None:
    """From what `make bench` leaves, if it was run."""
    path = tmp_path / "overhead.json"
    before = instrumentation_cost(path)
    ratio = {"cpu_ratio": [1.01, 1.02, 1.03]}
    none = {"cpu_ratio": [None, 1.02, None]}
    known = {"get": {"keylag": ratio}, "post": {"keylag": none}}
    path.write_text(json.dumps({"workloads": known}))

    assert before == "not measured on this machine; `make bench` does it"
    assert instrumentation_cost(path).endswith("make bench: get 1.020 [1.010, 1.030]")
    path.write_text(json.dumps({"workloads": {"post": {"keylag": none}}}))
    assert instrumentation_cost(path) == before  # one restart has no interval to cite

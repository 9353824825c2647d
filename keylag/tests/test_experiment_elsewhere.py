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
from fake_experiment import Fake
from fake_keystone import password_of, running

from keylag.experiment import reading
from keylag.experiment.elsewhere import Switched, run_switch
from keylag.experiment.environment import cost
from keylag.experiment.marks import TOKEN, Marked
from keylag.experiment.schedule import Block
from keylag.launcher import StackError
from keylag.users_csv import COLUMNS

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
BLOCK = Block(0, ["broken", "b"], 1)


@pytest.fixture
def switched(tmp_path: Path) -> Iterator[Switched]:
    """Give an executor on a Keystone of the tests."""
    with (tmp_path / "users.csv").open("w", newline="", encoding="utf-8") as stream:
        users = csv.writer(stream)
        users.writerow(COLUMNS)
        users.writerow(["someone", password_of("someone"), "D", "demo", "D"])
    with running() as keystone:
        path = tmp_path / "plan.toml"
        path.write_text(PLAN.format(url=keystone.url, folder=tmp_path))
        plan = reading.read(path)
        assert plan.elsewhere
        yield Switched(plan, plan.elsewhere)


def test_arms_are_switched_to_and_loaded(switched: Switched, tmp_path: Path) -> None:
    """The base comes first and last; after a switch that fails nothing is loaded."""
    switched.start()
    brought = switched.send(BLOCK, tmp_path / "jmeter")
    switched.stop()
    rows = brought["b"].rows

    assert (tmp_path / "switched").read_text().split() == ["a", "b", "a"]
    assert {(row.arm, row.method, row.success) for row in rows} == {("b", "POST", True)}
    assert rows[0].measured["total"] == pytest.approx(0.01)
    assert brought["broken"].rows == []
    assert "status 3. It said: no such thing" in brought["broken"].notes[0]


LEAVES = "sleep 1000 & echo $! >{folder}/pid"


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Path]:
    """Give the file where a command writes which process it leaves; ended here."""
    path = tmp_path / "pid"
    yield path
    if path.exists() and psutil.pid_exists(number := int(path.read_text())):
        os.kill(number, signal.SIGKILL)


def is_alive(left: Path) -> bool:
    """Tell whether a process still runs; give it a moment to end."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            process = psutil.Process(int(left.read_text()))
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
        except psutil.NoSuchProcess:
            return False
        time.sleep(0.05)
    return True


def test_a_switch_may_leave_a_process_with_its_output_open(left: Path) -> None:
    """As one that starts Keystone does: it goes on, and the process stays."""
    run_switch(LEAVES.format(folder=left.parent))

    process = psutil.Process(int(left.read_text()))
    assert process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("own_session", ["", "setsid "])
def test_a_switch_that_never_ends_is_an_error(
    left: Path, monkeypatch: pytest.MonkeyPatch, own_session: str
) -> None:
    """Whatever its processes do; all that did not leave its session are ended."""
    monkeypatch.setattr("keylag.experiment.elsewhere.SWITCH_SECONDS", 3.0)
    command = own_session + LEAVES.format(folder=left.parent)

    with pytest.raises(StackError, match=r"timed out .* It said: so far\n"):
        run_switch(f"echo so far; {command}; wait")

    if not own_session:
        assert not is_alive(left)


def test_an_interrupted_switch_is_ended(left: Path) -> None:
    """Ctrl-C does not reach its session, so it is ended with all it has started."""
    command = LEAVES.format(folder=left.parent)

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

    assert not is_alive(left)


def test_a_switch_cannot_ask(tmp_path: Path) -> None:
    """Its input is empty: it fails at once instead of waiting for an answer."""
    with pytest.raises(StackError, match=r"status 1. It said: $"):
        run_switch("read answer")


class Grafana(HTTPServer):
    """Keeps what it is told, and answers with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.code = code
        self.told: list[tuple[str, str | None, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Grafana

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.told.append((self.path, self.headers["Authorization"], body))
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


def marked(grafana: Grafana) -> Marked:
    """Return an executor that tells the server."""
    return Marked(Fake(), f"http://127.0.0.1:{grafana.server_address[1]}/")


@pytest.mark.parametrize("grafana", [200], indirect=True)
def test_arms_are_marked_with_their_block(
    grafana: Grafana, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As regions of time, by Grafana's own interface."""
    monkeypatch.setenv(TOKEN, "secret")
    brought = marked(grafana).send(Block(4, ["c", "b"], 1), tmp_path)
    first, (path, authorization, mark) = grafana.told

    assert (path, authorization) == ("/api/annotations", "Bearer secret")
    assert mark["tags"] == ["keylag", "experiment", "b"]
    assert (first[2]["text"], mark["text"]) == ("c, block 4", "b, block 4")
    assert (mark["time"], mark["timeEnd"]) == (1_000_000, 1_001_196)
    assert brought["b"].notes == []


@pytest.mark.parametrize("grafana", [401], indirect=True)
def test_a_grafana_that_refuses_is_asked_once(grafana: Grafana, tmp_path: Path) -> None:
    """The run goes on, and says so once."""
    brought = marked(grafana).send(Block(0, ["a", "b"], 1), tmp_path)

    assert len(grafana.told) == 1
    assert brought["a"].notes == [
        "Grafana took no mark, and is asked no more: HTTPError 401"
    ]
    assert brought["b"].notes == []


def test_a_keystone_that_never_answers_is_an_error(
    switched: Switched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some patience."""
    monkeypatch.setattr("keylag.experiment.elsewhere.ANSWER_SECONDS", 0)
    gone = switched._there.model_copy(update={"url": "http://127.0.0.1:9/v3"})

    with pytest.raises(StackError, match="9/v3 did not answer"):
        Switched(switched._plan, gone).start()


def test_the_cost_of_keylag_is_cited(tmp_path: Path) -> None:
    """From what `make bench` leaves, if it was run."""
    path = tmp_path / "overhead.json"
    before = cost(path)
    ratio = {"cpu_ratio": [1.01, 1.02, 1.03]}
    none = {"cpu_ratio": [None, 1.02, None]}
    known = {"get": {"keylag": ratio}, "post": {"keylag": none}}
    path.write_text(json.dumps({"workloads": known}))

    assert before == "not measured on this machine; `make bench` does it"
    assert cost(path).endswith("make bench: get 1.020 [1.010, 1.030]")
    path.write_text(json.dumps({"workloads": {"post": {"keylag": none}}}))
    assert cost(path) == before  # one restart has no interval to cite

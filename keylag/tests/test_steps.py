"""Progress of long steps without a terminal."""

import io
import re
import threading
from pathlib import Path

import pytest
from rich.console import Console
from rich.status import Status

from keylag import load_runner, load_target, steps
from keylag.commands import setup
from keylag.commands.setup import install
from keylag.jmeter import LoadResult
from keylag.jmeter_progress import Progress
from keylag.load_plans import find_plan
from keylag.steps import Heartbeat, show_step
from keylag.tools.tool import Build, Tool

LINES = 3


class Output(io.StringIO):
    """Text that is printed."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Condition()

    def write(self, text: str) -> int:
        with self.written:
            count = super().write(text)
            self.written.notify_all()
        return count

    def tells(self, beat: str) -> bool:
        """Wait until some heartbeats say this; return whether they did in a minute."""
        with self.written:
            return self.written.wait_for(lambda: self.beats().count(beat) >= LINES, 60)

    def beats(self) -> list[str]:
        """Return what the heartbeats said, without the times."""
        return re.findall(r"^(.*): \d+ s so far$", self.getvalue(), re.MULTILINE)


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> Output:
    """What is printed, by heartbeats that are quick."""
    monkeypatch.setattr(steps, "INTERVAL_SECONDS", 0.01)
    return Output()


def test_step_is_told_again_until_it_ends(output: Output) -> None:
    threads = threading.active_count()
    with show_step(Console(file=output), "Starting [keystone]"):
        assert output.tells("Starting [keystone]")

    assert set(output.beats()) == {"Starting [keystone]"}
    assert threading.active_count() == threads


def test_line_tells_what_the_step_does_now(output: Output) -> None:
    with Heartbeat(Console(file=output), "one") as beat:
        beat.update("two")
        assert output.tells("two")

    assert output.beats()[-1] == "two"


def test_short_step_prints_nothing() -> None:
    output = Output()
    with show_step(Console(file=output), "Starting"):
        pass

    assert output.getvalue() == ""


def test_terminal_shows_a_status() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)

    assert isinstance(show_step(console, "Starting"), Status)


def test_set_up_tells_which_tool_it_builds(
    output: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(build: Build) -> None:
        (build.folder / "thing").touch()
        assert output.tells("A thing: building")

    monkeypatch.setattr(setup, "state_folder", lambda: tmp_path)
    (tmp_path / "tools").mkdir()
    tool = Tool("thing", "A thing", (), "thing", make, "")
    install([tool], Console(file=output))

    assert set(output.beats()) == {"A thing: building"}


def test_load_tells_how_far_it_is(
    output: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, on_progress: object, **__: object) -> LoadResult:
        assert callable(on_progress)
        on_progress(Progress(done=7, errors=0, expected=100))
        assert output.tells("Sending token-issue, 7 of 100 requests")
        return LoadResult(tmp_path, tmp_path, interrupted=False)

    monkeypatch.setattr(load_runner.jmeter, "run", run)
    monkeypatch.setattr(load_runner, "jmeter_home", lambda: tmp_path)
    target = load_target.LoadTarget({})
    load_runner.send_load(
        find_plan("token-issue"), target, {}, tmp_path, Console(file=output)
    )

    assert output.beats()[-1] == "Sending token-issue, 7 of 100 requests"

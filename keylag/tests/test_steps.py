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
    """Text that is printed; `seen` is set after some lines."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if len(self.beats()) >= LINES:
            self.seen.set()
        return written

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
        assert output.seen.wait(60)

    assert set(output.beats()) == {"Starting [keystone]"}
    assert threading.active_count() == threads


def test_line_tells_what_the_step_does_now(output: Output) -> None:
    with Heartbeat(Console(file=output), "one") as beat:
        beat.update("two")
        assert output.seen.wait(60)

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
        assert output.seen.wait(60)

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
        assert output.seen.wait(60)
        return LoadResult(tmp_path, tmp_path, interrupted=False)

    monkeypatch.setattr(load_runner.jmeter, "run", run)
    monkeypatch.setattr(load_runner, "jmeter_home", lambda: tmp_path)
    target = load_target.LoadTarget({})
    load_runner.send_load(
        find_plan("token-issue"), target, {}, tmp_path, Console(file=output)
    )

    assert output.beats()[-1] == "Sending token-issue, 7 of 100 requests"

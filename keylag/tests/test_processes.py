"""Processes are found by their mark and by nothing else."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from keylag import processes
from keylag.processes import CommandError, find, marks, roots, run_to_end, start, stop

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('deaf', flush=True); time.sleep(60)"
    ),
]
PARENT = [
    sys.executable,
    "-c",
    (
        "import subprocess, sys, time;"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print('born', flush=True); time.sleep(60)"
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A stack's folder; whatever carries its mark is gone after the test."""
    yield tmp_path
    stop(find(stack=tmp_path), grace=0.0)
    assert find(stack=tmp_path) == []


def launch(folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    """Start a marked process with its output in folder/log."""
    env = {**os.environ, **marks(folder, "sleeper")}
    return start(command, env, folder / "log")


def wait_for_log(folder: Path, word: str) -> None:
    """Wait until the process has said a word."""
    deadline = time.monotonic() + 10
    while word not in (folder / "log").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_marked_process_is_found(folder: Path) -> None:
    """The mark names the stack and the service."""
    process = launch(folder, SLEEP)

    found = find(stack=folder)

    assert [(folder, "sleeper", process.pid)] == [
        (mark.stack, mark.service, mark.process.pid) for mark in found
    ]
    assert find(below=folder.parent)[0].process.pid == process.pid


def test_another_stacks_process_is_left_alone(folder: Path, tmp_path: Path) -> None:
    """A stack whose folder's name begins the same is another stack."""
    launch(folder, SLEEP)

    assert find(stack=tmp_path.with_name(tmp_path.name + "2")) == []
    assert find(below=tmp_path / "deeper") == []


def test_children_go_with_their_parent(folder: Path) -> None:
    """Workers carry the mark too, and stopping leaves none behind."""
    parent = launch(folder, PARENT)
    wait_for_log(folder, "born")

    found = find(stack=folder)
    top = [mark.process.pid for mark in roots(found)]
    stop(found, grace=0.2)

    assert len(found) == 2
    assert top == [parent.pid]
    assert find(stack=folder) == []


def test_a_process_that_does_not_listen_is_killed(folder: Path) -> None:
    """After the grace time the polite way is over."""
    launch(folder, STUBBORN)
    wait_for_log(folder, "deaf")

    stop(find(stack=folder), grace=0.1)

    assert find(stack=folder) == []


def test_servers_have_a_session_of_their_own(folder: Path) -> None:
    """Ctrl-C in the terminal does not reach them."""
    process = launch(folder, SLEEP)

    assert os.getsid(process.pid) == process.pid


def test_a_failing_helper_is_named(folder: Path) -> None:
    """The error says which command and which code; the log has its words."""
    command = [sys.executable, "-c", "print('why'); raise SystemExit(3)"]

    with pytest.raises(CommandError, match="ended with code 3"):
        run_to_end(command, marks(folder, "helper"), folder / "log")

    assert (folder / "log").read_text() == "why\n"


def test_unreadable_processes_are_skipped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that ends while it is looked at is no error."""
    lasting = psutil.Process(launch(folder, SLEEP).pid)
    process = launch(folder, SLEEP)
    ended = psutil.Process(process.pid)
    process.kill()
    process.wait()
    monkeypatch.setattr(psutil, "process_iter", lambda: iter([ended, lasting]))

    assert [mark.process for mark in processes.find(stack=folder)] == [lasting]

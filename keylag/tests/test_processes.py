"""Processes of stacks, identified by their environment."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from keylag import processes
from keylag.processes import (
    CommandError,
    find_processes,
    run_and_wait,
    stack_variables,
    start_server,
    stop_processes,
    without_children,
)

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('ready', flush=True); time.sleep(60)"
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
    """A stack's folder; its processes end after the test."""
    yield tmp_path
    stop_processes(find_processes(stack=tmp_path), grace=0.0)
    assert find_processes(stack=tmp_path) == []


def launch(folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    """Start a process of the stack with its output in folder/log."""
    env = {**os.environ, **stack_variables(folder, "sleeper")}
    return start_server(command, env, folder / "log")


def wait_for_log(folder: Path, word: str) -> None:
    """Wait until the log contains a word."""
    deadline = time.monotonic() + 10
    while word not in (folder / "log").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_process_is_found_by_its_variables(folder: Path) -> None:
    process = launch(folder, SLEEP)

    found = find_processes(stack=folder)

    assert [(folder, "sleeper", process.pid)] == [
        (mark.stack, mark.service, mark.process.pid) for mark in found
    ]
    assert find_processes(below=folder.parent)[0].process.pid == process.pid


def test_processes_of_other_stacks_are_not_found(folder: Path, tmp_path: Path) -> None:
    """The folder's name may be a prefix of another one's."""
    launch(folder, SLEEP)

    assert find_processes(stack=tmp_path.with_name(tmp_path.name + "2")) == []
    assert find_processes(below=tmp_path / "deeper") == []


def test_stop_ends_children_too(folder: Path) -> None:
    parent = launch(folder, PARENT)
    wait_for_log(folder, "born")

    found = find_processes(stack=folder)
    top = [mark.process.pid for mark in without_children(found)]
    stop_processes(found, grace=0.2)

    assert len(found) == 2
    assert top == [parent.pid]
    assert find_processes(stack=folder) == []


def test_process_that_ignores_sigterm_is_killed(folder: Path) -> None:
    launch(folder, STUBBORN)
    wait_for_log(folder, "ready")

    stop_processes(find_processes(stack=folder), grace=0.1)

    assert find_processes(stack=folder) == []


def test_servers_run_in_their_own_session(folder: Path) -> None:
    process = launch(folder, SLEEP)

    assert os.getsid(process.pid) == process.pid


def test_failing_helper_raises_with_its_exit_code(folder: Path) -> None:
    command = [sys.executable, "-c", "print('why'); raise SystemExit(3)"]

    with pytest.raises(CommandError, match="failed with exit code 3"):
        run_and_wait(command, stack_variables(folder, "helper"), folder / "log")

    assert (folder / "log").read_text() == "why\n"


def test_processes_that_end_meanwhile_are_skipped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lasting = psutil.Process(launch(folder, SLEEP).pid)
    process = launch(folder, SLEEP)
    ended = psutil.Process(process.pid)
    process.kill()
    process.wait()
    monkeypatch.setattr(psutil, "process_iter", lambda: iter([ended, lasting]))

    assert [mark.process for mark in processes.find_processes(stack=folder)] == [
        lasting
    ]

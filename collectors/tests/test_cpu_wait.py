"""The time that threads waited for a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from keylag_otel import cpu_wait

PATIENCE = 30
"""Seconds until something is broken, not slow."""


def waited() -> list[float]:
    return [seconds for seconds, _ in cpu_wait.cpu_wait()]


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that replaces that of the kernel."""
    monkeypatch.setattr(cpu_wait, "_TASKS", tmp_path)
    monkeypatch.setattr(cpu_wait, "_waits", {})
    return tmp_path


def run_thread(tasks: Path, thread: str, seconds: int) -> None:
    folder = tasks / thread
    folder.mkdir(exist_ok=True)
    (folder / "schedstat").write_text(f"5 {seconds * 10**9} 7\n", encoding="ascii")


def end_thread(tasks: Path, thread: str) -> None:
    (tasks / thread / "schedstat").unlink()
    (tasks / thread).rmdir()


def test_waits_of_all_threads_are_added(tasks) -> None:
    run_thread(tasks, "10", 1)
    run_thread(tasks, "11", 2)

    assert waited() == [3]


def test_threads_that_end_stay_in_the_sum(tasks) -> None:
    run_thread(tasks, "10", 1)
    run_thread(tasks, "11", 2)
    waited()
    end_thread(tasks, "11")

    assert waited() == [3]
    run_thread(tasks, "10", 4)
    assert waited() == [6]


def test_new_thread_with_the_id_of_an_ended_one_is_added(tasks) -> None:
    run_thread(tasks, "10", 1)
    run_thread(tasks, "11", 5)
    waited()
    run_thread(tasks, "11", 2)

    assert waited() == [8]
    assert waited() == [8]


def test_thread_that_ends_while_it_is_read_is_left_out(tasks) -> None:
    run_thread(tasks, "10", 1)
    (tasks / "11").mkdir()

    assert waited() == [1]


def test_forked_child_counts_its_own_threads_only(tasks, monkeypatch) -> None:
    run_thread(tasks, "10", 5)
    waited()
    end_thread(tasks, "10")
    run_thread(tasks, "20", 1)
    monkeypatch.setattr(os, "getpid", lambda: -1)

    assert waited() == [1]


def test_kernel_without_the_file_has_no_value(tasks) -> None:
    assert waited() == []
    tasks.rmdir()
    assert waited() == []


def test_kernel_that_does_not_count_has_no_value(tasks) -> None:
    run_thread(tasks, "10", 0)
    (tasks / "10" / "schedstat").write_text("0 0 0\n", encoding="ascii")

    assert waited() == []


@pytest.fixture
def shared_processor() -> Iterator[None]:
    """One processor for this process and another one that never sleeps."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    busy.kill()
    busy.wait()
    os.sched_setaffinity(0, before)


@pytest.mark.skipif(not waited(), reason="this kernel does not count the wait")
def test_wait_grows_if_another_process_uses_the_processor(shared_processor) -> None:
    (before,) = waited()
    deadline = time.monotonic() + PATIENCE

    while waited() < [before + 0.05]:
        assert time.monotonic() < deadline
        sum(range(100_000))

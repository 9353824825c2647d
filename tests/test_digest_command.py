"""`keylag digest` with the real pt-query-digest."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result

from keylag.cli import main
from keylag.commands.digest import TimeParam
from keylag.paths import CHECKOUT
from keylag.pt_query_digest import PROGRAM

LOG = CHECKOUT / "exporters" / "tests" / "data" / "issue.log"
FIRST_SECOND = 1795240444
"""Time of the first event of the log, which spans three seconds."""

reference = pytest.mark.skipif(
    shutil.which("pt-query-digest") is None, reason="not installed: percona-toolkit"
)


def run_digest(tmp_path: Path, *words: str) -> tuple[Result, Path]:
    """Run `keylag digest`; return its result and the path of its report."""
    out = tmp_path / "there" / "report"
    return CliRunner().invoke(main, ["digest", *words, f"--out={out}"]), out


def events(report: Path) -> int:
    """Return the number of events in a JSON report."""
    count: int = json.loads(report.read_text())["global"]["query_count"]
    return count


@reference
def test_windows_partition_the_log(tmp_path: Path) -> None:
    """An event at the border belongs to the later window."""
    words = (str(LOG), "--output=json")
    border = "2026-11-21T06:54:06+01:00"
    counts = [
        events(run_digest(tmp_path, *words, *window)[1])
        for window in ([], [f"--until={border}"], [f"--since={border}"])
    ]

    times = LOG.read_text().split("SET timestamp=")[1:]
    earlier = sum(int(text.partition(";")[0]) < FIRST_SECOND + 2 for text in times)
    assert counts == [1019, earlier, 1019 - earlier]
    assert 0 < earlier < 1019


@reference
def test_report_is_printed_and_written(tmp_path: Path) -> None:
    packed = tmp_path / "slow.log.2.gz"
    packed.write_bytes(gzip.compress(LOG.read_bytes()))

    result, out = run_digest(tmp_path, str(packed))

    assert result.exit_code == 0
    assert "# Overall: 1.02k total, 23 unique" in out.read_text()
    assert out.read_text() in result.output
    heads = re.findall(r"^# Query \d+:.*\n# (.*)", out.read_text(), re.MULTILINE)
    assert heads[:2] == [
        "Statement: SELECT … FROM project WHERE id = ?",
        "Statement: SELECT … FROM role JOIN role_option ON … WHERE role.id = ?",
    ]
    assert all(head.startswith("Statement: ") for head in heads)


@reference
def test_empty_window_is_an_error(tmp_path: Path) -> None:
    result, out = run_digest(tmp_path, str(LOG), "--since=1s")

    assert (result.exit_code, out.exists()) == (1, False)
    assert result.output.strip() == f"Error: {LOG} has no events in this window."


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/nonexistent"], "'/nonexistent' does not exist"),
        ([str(LOG), "--since=soon"], "soon is not a time such as"),
        ([str(LOG), "--since=1m", "--until=2m"], "--since has to be before --until"),
        (["--state=/nonexistent"], "/nonexistent/logs/mariadb-slow.log does not exist"),
    ],
)
def test_invalid_arguments_are_rejected(
    tmp_path: Path, words: list[str], message: str
) -> None:
    result, out = run_digest(tmp_path, *words)

    assert result.exit_code != 0
    assert message in result.output
    assert not out.exists()


def test_missing_program_error_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    result, _ = run_digest(tmp_path, str(LOG))

    assert result.exit_code == 1
    assert "apt install percona-toolkit" in result.output


@reference
def test_damaged_archive_is_an_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(LOG.read_bytes())[:1000])

    result, out = run_digest(tmp_path, str(broken))

    assert result.exit_code == 1
    assert str(broken) in result.output
    assert "Traceback" not in result.output
    assert not out.exists()


def is_digest(process: psutil.Process) -> bool:
    """Return whether a process runs pt-query-digest."""
    try:
        return any(PROGRAM in word for word in process.cmdline())
    except psutil.NoSuchProcess:
        return False


@reference
def test_ctrl_c_stops_child_processes(tmp_path: Path) -> None:
    out = tmp_path / "report"
    command = [Path(sys.executable).with_name("keylag"), "digest", "-", f"--out={out}"]
    running = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    started: list[psutil.Process] = []
    # Other children come and go before pt-query-digest starts.
    while not any(map(is_digest, started)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
        started = psutil.Process(running.pid).children(recursive=True)

    os.killpg(running.pid, signal.SIGINT)
    result, _ = running.communicate(timeout=60)

    assert b"Traceback" not in result
    assert running.returncode == 130
    assert psutil.wait_procs(started, timeout=30)[1] == []
    assert not out.exists()


def test_time_is_absolute_or_relative() -> None:
    read = TimeParam().convert

    assert read("2026-11-21T05:54:04", None, None) == FIRST_SECOND
    assert read("2026-11-21T06:54:04+01:00", None, None) == FIRST_SECOND
    assert read("2h", None, None) == pytest.approx(time.time() - 7200, abs=60)

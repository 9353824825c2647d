"""Pythons for the collectors' tests, and their sandbox."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from keylag.paths import CHECKOUT
from keylag_dev import pythons
from keylag_dev.debian import DebianRelease
from keylag_dev.pythons import PYTHONS, Outcome, Python
from keylag_dev.sandbox import contained_command, debian_command
from keylag_otel.package import TESTED_PYTHONS

NEEDS_BWRAP = pytest.mark.skipif(
    shutil.which("bwrap") is None,
    reason="there is no bwrap; `./setup.sh --with pythons` installs it",
)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail after a minute."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def sandboxed(script: str, *writable: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a sandbox with this system's files."""
    command = debian_command(
        Path("/"), ["sh", "-c", script], cwd=CHECKOUT, writable=writable
    )
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_pythons_are_those_that_keylag_otel_check_lists() -> None:
    assert tuple(PYTHONS) == TESTED_PYTHONS


@NEEDS_BWRAP
def test_sandbox_writes_only_to_writable_paths(tmp_path: Path) -> None:
    refused = sandboxed("touch written-inside")
    allowed = sandboxed(f"touch {tmp_path}/written-inside", tmp_path)

    assert "Read-only file system" in refused.stderr
    assert allowed.returncode == 0, allowed.stderr
    assert (tmp_path / "written-inside").exists()


@NEEDS_BWRAP
def test_sandbox_reads_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("KEYLAG_STATE", folder)
        (Path(folder) / "tool").write_text("a tool")
        read = sandboxed(f"cat {folder}/tool")

    assert read.stdout == "a tool", read.stderr


@NEEDS_BWRAP
def test_sandbox_has_only_the_loopback_interface() -> None:
    interfaces = sandboxed("cat /proc/net/dev").stdout.splitlines()[2:]

    assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]


@NEEDS_BWRAP
def test_background_processes_end_with_the_command(tmp_path: Path) -> None:
    # A surviving process would keep the pipe of stdout open.
    ended = sandboxed(f"sleep 600 & echo started > {tmp_path}/output", tmp_path)

    assert ended.returncode == 0
    assert (tmp_path / "output").read_text() == "started\n"


@NEEDS_BWRAP
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_mounts_disappear_when_the_command_is_killed(tmp_path: Path) -> None:
    """Otherwise `make clean` deletes the mounted files."""
    place, ready = tmp_path / "mounted", tmp_path / "ready"
    place.mkdir()
    script = f"mount -t tmpfs none {place} && touch {ready} && sleep 600"
    process = subprocess.Popen(contained_command(["sh", "-c", script]))
    wait_until(ready.exists)
    mounted_during = Path("/proc/self/mountinfo").read_text()
    process.kill()
    process.wait()

    assert str(place) not in mounted_during
    assert str(place) not in Path("/proc/self/mountinfo").read_text()


def test_unavailable_debian_release_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KEYLAG_STATE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(PYTHONS, "3.99", Python(DebianRelease("none", "3.99")))

    assert pythons.main(["3.99"]) == 0
    assert "3.99    skipped: Debian none is unavailable" in capsys.readouterr().out


def test_outcome_row_aligns_with_the_headings() -> None:
    row = str(Outcome("3.14", "", passed=757, failed=1, skipped=20, seconds=99.6))

    assert row.split() == ["3.14", "757", "1", "20", "100", "s"]
    assert len(row) == len(pythons.HEADINGS)

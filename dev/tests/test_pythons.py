"""The Pythons that the collectors' tests run on, and the sandbox that they run in."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from keylag.state import CHECKOUT
from keylag_dev import pythons
from keylag_dev.debian import Debian
from keylag_dev.pythons import PYTHONS, Outcome, Python
from keylag_dev.sandbox import contained, inside
from keylag_otel.package import TESTED_PYTHONS

NEEDS_BWRAP = pytest.mark.skipif(
    shutil.which("bwrap") is None,
    reason="there is no bwrap; `./setup.sh --with pythons` installs it",
)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does; fail after a minute."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def sandboxed(script: str, *writable: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script inside this machine's own Debian."""
    command = inside(Path("/"), ["sh", "-c", script], cwd=CHECKOUT, writable=writable)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_check_names_the_pythons_that_are_tested() -> None:
    """What `keylag-otel check` calls tested is tested, and nothing is left out."""
    assert tuple(PYTHONS) == TESTED_PYTHONS


@NEEDS_BWRAP
def test_only_what_is_writable_can_be_written(tmp_path: Path) -> None:
    """The checkout cannot be changed from inside."""
    refused = sandboxed("touch written-inside")
    allowed = sandboxed(f"touch {tmp_path}/written-inside", tmp_path)

    assert "Read-only file system" in refused.stderr
    assert allowed.returncode == 0, allowed.stderr
    assert (tmp_path / "written-inside").exists()


@NEEDS_BWRAP
def test_a_state_folder_elsewhere_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in it runs inside; the sandbox has a /tmp of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("KEYLAG_STATE", folder)
        (Path(folder) / "tool").write_text("a tool")
        read = sandboxed(f"cat {folder}/tool")

    assert read.stdout == "a tool", read.stderr


@NEEDS_BWRAP
def test_only_the_loopback_is_there() -> None:
    """Servers inside are reached from inside alone."""
    interfaces = sandboxed("cat /proc/net/dev").stdout.splitlines()[2:]

    assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]


@NEEDS_BWRAP
def test_nothing_runs_on_when_the_command_has_ended(tmp_path: Path) -> None:
    """What it left in the background ends with it."""
    # The pipe would stay open as long as anything that was started holds it.
    ended = sandboxed(f"sleep 600 & echo started > {tmp_path}/said", tmp_path)

    assert ended.returncode == 0
    assert (tmp_path / "said").read_text() == "started\n"


@NEEDS_BWRAP
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_nothing_stays_mounted_when_the_command_is_killed(tmp_path: Path) -> None:
    """Not even for `make clean`, which deletes whatever is there."""
    place, ready = tmp_path / "mounted", tmp_path / "ready"
    place.mkdir()
    script = f"mount -t tmpfs none {place} && touch {ready} && sleep 600"
    process = subprocess.Popen(contained(["sh", "-c", script]))
    wait_until(ready.exists)
    mounted_meanwhile = Path("/proc/self/mountinfo").read_text()
    process.kill()
    process.wait()

    assert str(place) not in mounted_meanwhile
    assert str(place) not in Path("/proc/self/mountinfo").read_text()


def test_a_debian_that_cannot_be_had_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so, and it is no failure."""
    monkeypatch.setenv("KEYLAG_STATE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(PYTHONS, "3.99", Python(Debian("none", "3.99")))

    assert pythons.main(["3.99"]) == 0
    assert "3.99    skipped: Debian none cannot be had" in capsys.readouterr().out


def test_an_outcome_is_a_row_below_the_headings() -> None:
    """Counts stand right below what they are counts of."""
    row = str(Outcome("3.14", "", passed=757, failed=1, skipped=20, seconds=99.6))

    assert row.split() == ["3.14", "757", "1", "20", "100", "s"]
    assert len(row) == len(pythons.HEADINGS)

"""The state folder, and atomic writes of files and folders."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from keylag import state
from keylag.paths import CHECKOUT
from keylag.state import locked, replace_folder, state_folder, write_private


def test_default_state_folder_is_in_the_checkout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KEYLAG_STATE", raising=False)

    assert state_folder() == CHECKOUT / ".keylag"
    assert (CHECKOUT / "deploy").is_dir()


def test_without_a_checkout_the_state_folder_is_in_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KEYLAG_STATE", raising=False)
    monkeypatch.setattr(state, "INSTALLED", True)
    monkeypatch.chdir(tmp_path)

    assert state_folder() == tmp_path / ".keylag"


def test_keylag_state_selects_the_state_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KEYLAG_STATE", str(tmp_path / "x"))

    assert tmp_path / "x" == state_folder()


def test_replace_folder_replaces_after_success(tmp_path: Path) -> None:
    target = tmp_path / "tool"
    target.mkdir()
    (target / "old").touch()

    with replace_folder(target) as scratch:
        (scratch / "new").touch()
        assert [path.name for path in target.iterdir()] == ["old"]

    assert [path.name for path in target.iterdir()] == ["new"]
    assert [target] == list(tmp_path.iterdir())


def interrupted(target: Path) -> None:
    """Simulate Ctrl-C while a folder is being replaced."""
    with replace_folder(target) as scratch:
        (scratch / "new").touch()
        raise KeyboardInterrupt


def test_interrupted_replace_folder_keeps_the_old_one(tmp_path: Path) -> None:
    """No scratch folder stays behind."""
    target = tmp_path / "tool"
    target.mkdir()
    (target / "old").touch()

    with pytest.raises(KeyboardInterrupt):
        interrupted(target)

    assert [path.name for path in target.iterdir()] == ["old"]
    assert [target] == list(tmp_path.iterdir())


def test_private_files_have_mode_0600(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)

    write_private(path, "new")

    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [path] == list(tmp_path.iterdir())


def test_lock_excludes_other_processes(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    attempt = (
        "import fcntl, sys\n"
        "try: fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except BlockingIOError: sys.exit(3)\n"
    )
    command = [sys.executable, "-c", attempt, str(lock)]

    with locked(lock):
        inside = subprocess.run(command, check=False).returncode
    outside = subprocess.run(command, check=False).returncode

    assert (inside, outside) == (3, 0)

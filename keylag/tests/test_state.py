"""The state folder, and the ways of writing that leave nothing half made."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from keylag.state import CHECKOUT, locked, moved_in, state_folder, write_private


def test_state_folder_is_in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without $KEYLAG_STATE everything is kept in the checkout."""
    monkeypatch.delenv("KEYLAG_STATE", raising=False)

    assert state_folder() == CHECKOUT / ".keylag"
    assert (CHECKOUT / "deploy").is_dir()


def test_state_folder_may_be_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """$KEYLAG_STATE wins."""
    monkeypatch.setenv("KEYLAG_STATE", str(tmp_path / "x"))

    assert tmp_path / "x" == state_folder()


def test_a_folder_is_moved_in_whole(tmp_path: Path) -> None:
    """The target is the new folder once the block has ended well."""
    target = tmp_path / "tool"
    target.mkdir()
    (target / "old").touch()

    with moved_in(target) as scratch:
        (scratch / "new").touch()
        assert [path.name for path in target.iterdir()] == ["old"]

    assert [path.name for path in target.iterdir()] == ["new"]
    assert [target] == list(tmp_path.iterdir())


def interrupted(target: Path) -> None:
    """Begin to make a folder and be stopped by Ctrl-C."""
    with moved_in(target) as scratch:
        (scratch / "new").touch()
        raise KeyboardInterrupt


def test_an_interrupted_folder_leaves_the_old_one(tmp_path: Path) -> None:
    """After Ctrl-C in the middle the target is what it was, with no litter."""
    target = tmp_path / "tool"
    target.mkdir()
    (target / "old").touch()

    with pytest.raises(KeyboardInterrupt):
        interrupted(target)

    assert [path.name for path in target.iterdir()] == ["old"]
    assert [target] == list(tmp_path.iterdir())


def test_private_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    """A password file has mode 0600, also when it replaces another one."""
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)

    write_private(path, "new")

    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [path] == list(tmp_path.iterdir())


def test_a_lock_keeps_another_process_out(tmp_path: Path) -> None:
    """While one process holds the lock, another one cannot take it."""
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

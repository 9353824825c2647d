"""Error messages of setup.sh."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from keylag.paths import CHECKOUT

OLD = """\
#!/bin/sh
case "$*" in
  --version) echo Python 3.9.2 ;;
  *version_info*) exit 1 ;;
  *) exit 0 ;;
esac
"""
UNREACHABLE = "http://127.0.0.1:1/simple"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the files that setup.sh reads first."""
    shutil.copyfile(CHECKOUT / "setup.sh", tmp_path / "setup.sh")
    shutil.copytree(CHECKOUT / "locks", tmp_path / "locks")
    return tmp_path


def set_up(checkout: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run setup.sh with a minimal environment."""
    inherited = {
        name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ
    }
    return subprocess.run(
        ["bash", checkout / "setup.sh"],
        env={**inherited, **env},
        capture_output=True,
        check=False,
        text=True,
    )


def test_old_python_is_rejected_before_any_change(checkout: Path) -> None:
    programs = checkout / "bin"
    programs.mkdir()
    old = programs / "python3"
    old.write_text(OLD)
    old.chmod(0o755)
    before = sorted(checkout.iterdir())
    done = set_up(checkout, PATH=f"{programs}:{os.environ['PATH']}")

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"Keylag needs Python 3.11 or newer; {old} is Python 3.9.2.\n"
    )
    assert "put it first on the PATH" in done.stderr
    assert sorted(checkout.iterdir()) == before


def test_unreachable_index_is_named(checkout: Path) -> None:
    done = set_up(checkout, PIP_INDEX_URL=UNREACHABLE)

    assert done.returncode == 1
    assert "uv could not be installed; the reason is above." in done.stderr
    assert f"come from {UNREACHABLE}." in done.stderr
    assert not (checkout / ".venv").exists()

"""Paths that programs of the stack accept or reject."""

import os
import subprocess
from pathlib import Path

import pytest

from keylag.datadir_cache import DatadirCache
from keylag.paths import CHECKOUT
from keylag.services import mariadb
from keylag.services.base import LONGEST_SOCKET, SOCKET_PATH_LIMIT, socket_folder
from keylag.stack import Stack
from keylag.state import UNSAFE_CHARACTERS, PathError, check_path
from keylag.tools import Tools

SETUP = CHECKOUT / "setup.sh"


def set_up(script: Path, state: Path) -> subprocess.CompletedProcess[str]:
    """Run setup.sh with a state folder."""
    return subprocess.run(
        ["bash", script],
        env={**os.environ, "KEYLAG_STATE": str(state)},
        capture_output=True,
        check=False,
        text=True,
    )


@pytest.mark.parametrize("character", UNSAFE_CHARACTERS)
def test_unsafe_characters_are_rejected(character: str, tmp_path: Path) -> None:
    state = tmp_path / f"a{character}b"
    refused = set_up(SETUP, state)

    with pytest.raises(PathError, match="Choose a path of letters"):
        check_path(state)
    assert refused.returncode == 2
    assert "Choose a path of letters" in refused.stderr
    assert "Nothing was installed." in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_checkout_path_with_a_space_is_rejected(tmp_path: Path) -> None:
    checkout = tmp_path / "a b"
    checkout.mkdir()
    script = checkout / SETUP.name
    script.write_bytes(SETUP.read_bytes())
    refused = set_up(script, tmp_path)

    assert refused.returncode == 2
    assert f"The path {checkout} contains a blank" in refused.stderr
    assert list(checkout.iterdir()) == [script]


def test_path_with_invalid_utf8_is_rejected() -> None:
    """Python decodes invalid UTF-8 of file names to surrogates."""
    with pytest.raises(PathError):
        check_path(Path(os.fsdecode(b"/a\xff")))


def test_socket_paths_are_short_and_ignore_tmpdir(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / ("long-" * 40)
    first = socket_folder(folder)
    monkeypatch.setenv("TMPDIR", str(folder))

    assert socket_folder(folder) == first
    assert len(os.fsencode(first / LONGEST_SOCKET)) <= SOCKET_PATH_LIMIT


@pytest.mark.stack
@pytest.mark.parametrize("name", ["ünï-日本", "long-" * 40])
def test_database_runs_in_unicode_and_long_paths(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to(name)

    with Stack(link / "stack", Tools.load(), services=[mariadb.SERVICE]) as stack:
        assert stack.folder == tmp_path / name / "stack"
        assert Stack(stack.folder, stack.tools, services=[mariadb.SERVICE]).is_up()


@pytest.mark.stack
def test_database_leaves_temporary_tables_of_other_servers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """MariaDB deletes the temporary tables that it finds when it starts."""
    shared = tmp_path / "shared"
    shared.mkdir()
    table = shared / "#sql-temptable-1-1-1.MAD"
    table.touch()
    monkeypatch.setenv("TMPDIR", str(shared))
    empty = DatadirCache(tmp_path / "prepared")

    with Stack(
        tmp_path / "stack",
        Tools.load(),
        services=[mariadb.SERVICE],
        datadir_cache=empty,
    ):
        assert table.exists()


@pytest.mark.stack
def test_stack_path_with_a_space_is_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "a b"

    with pytest.raises(PathError, match="a b"):
        Stack(folder, Tools.load(), services=[mariadb.SERVICE]).up()
    assert not folder.exists()

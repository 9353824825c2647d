"""Programs of the system, and the Debian packages that they come from."""

import shutil
from pathlib import Path

import pytest

from keylag.tools import EXTRA_TOOLS, ToolError, programs
from keylag.tools.programs import (
    EXTRA_PACKAGES,
    PACKAGES,
    find_program,
    install_packages,
    missing_packages,
)


def test_package_is_missing_without_one_of_its_programs_or_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    header = tmp_path / "ldap.h"
    wanted = {"a": ("true",), "b": ("true", "keylag-none"), "c": (str(header),)}
    # A file of that name in the working directory is no program.
    (tmp_path / "keylag-none").touch()
    monkeypatch.chdir(tmp_path)

    assert missing_packages(wanted) == ["b", "c"]
    header.touch()
    assert missing_packages(wanted) == ["b"]


def test_missing_packages_are_named_where_there_is_no_apt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / "bash").symlink_to(bash)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "PACKAGES", {"some-server": ("keylag-none",)})

    with pytest.raises(ToolError, match="Debian packages are missing: some-server"):
        install_packages()
    told = capfd.readouterr()
    assert "This is not Debian" in told.err
    assert "some-server" in told.err
    assert told.out == ""


def test_extra_packages_are_of_extras_that_exist() -> None:
    assert EXTRA_PACKAGES.keys() <= EXTRA_TOOLS.keys()


def test_each_name_is_a_program_or_an_absolute_path() -> None:
    for packages in (PACKAGES, *EXTRA_PACKAGES.values()):
        for name in (name for names in packages.values() for name in names):
            assert name.startswith("/") or "/" not in name


def test_missing_program_has_advice() -> None:
    with pytest.raises(ToolError, match=r"keylag-none is not installed\. Do this\."):
        find_program("keylag-none", "Do this.")

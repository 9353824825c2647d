"""The C part is compiled for its checks, and a warning stops them."""

import subprocess
import sys
from pathlib import Path

import pytest

from keylag.tools import ToolError
from keylag_dev import native_checks


def test_the_copy_is_what_its_interpreter_imports(tmp_path: Path) -> None:
    native_checks.compile_into(tmp_path / "copy", sys.executable, ("-O0",))

    code = "from keylag_otel import _native; print(_native.__file__)"
    printed = subprocess.check_output(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path / "copy" / "src")},
        text=True,
    )

    assert printed.startswith(str(tmp_path))


def test_a_warning_of_the_compiler_stops_the_check(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"did not compile with -Wpadded[^$]*padding"):
        native_checks.compile_into(tmp_path / "copy", sys.executable, ("-Wpadded",))


def test_an_unknown_check_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert native_checks.main(["valgrind"]) == 2
    assert "There is no valgrind; there are memory" in capsys.readouterr().out


def test_a_failed_check_does_not_hide_the_next_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = dict.fromkeys(native_checks.CHECKS, 0) | {"sanitizers": 1}
    monkeypatch.setattr(native_checks, "run", codes.__getitem__)

    assert native_checks.main([]) == 1
    shown = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        ["memory", "passed"],
        ["sanitizers", "FAILED"],
        ["references", "passed"],
        ["differential", "passed"],
    ]

"""Compilation of the native part for its checks."""

import subprocess
import sys
from pathlib import Path

import pytest

from keylag.tools import ToolError
from keylag_dev import native_checks


def test_compiled_copy_is_imported(tmp_path: Path) -> None:
    native_checks.compile_native(tmp_path / "copy", sys.executable, ("-O0",))

    code = "from keylag_otel import _native; print(_native.__file__)"
    printed = subprocess.check_output(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path / "copy" / "src")},
        text=True,
    )

    assert printed.startswith(str(tmp_path))


def test_compiler_warning_fails_the_check(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"did not compile with -Wpadded[^$]*padding"):
        native_checks.compile_native(tmp_path / "copy", sys.executable, ("-Wpadded",))


def test_unknown_check_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert native_checks.main(["valgrind"]) == 2
    assert "Unknown: valgrind. Checks: memory" in capsys.readouterr().out


def test_checks_continue_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = dict.fromkeys(native_checks.CHECKS, 0) | {"sanitizers": 1}
    monkeypatch.setattr(native_checks, "run_check", codes.__getitem__)

    assert native_checks.main([]) == 1
    shown = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        ["memory", "passed"],
        ["sanitizers", "FAILED"],
        ["references", "passed"],
        ["differential", "passed"],
    ]

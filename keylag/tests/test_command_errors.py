"""Errors of commands: message, advice and exit code."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from keylag import pt_query_digest
from keylag.cli import COMMANDS, main
from keylag.command_errors import INTERRUPTED
from keylag.errors import KeylagError
from keylag.paths import CHECKOUT

LOG = CHECKOUT / "exporters" / "tests" / "data" / "issue.log"
KEYLAG = Path(sys.executable).with_name("keylag")
TRACE = Path(__file__).parent / "data" / "osprofiler.json"
CODES = CHECKOUT / "docs" / "reference" / "exit-codes.md"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "--state=/dev/null/x"], "Not a directory: /dev/null/x. Choose"),
        (
            ["explain", str(TRACE), "--html=/dev/full"],
            "left on device: /dev/full. Free",
        ),
        (
            ["explain", str(TRACE), "--html=/proc/no/x"],
            "No such file or directory: /proc",
        ),
        (["digest", str(LOG), "--out=/dev/full"], "left on device: /dev/full. Free"),
        (["digest", str(LOG), "--out=/proc/no/x"], "No such file or directory: /proc"),
        (
            ["trace", "validate", "--state=/dev/null/x"],
            "No stack runs in /dev/null/x.",
        ),
        (["explain", "x", "--from=redis://127.0.0.1:70000"], "70000"),
        (["explain", "x", "--from=redis://127.0.0.1:1"], "127.0.0.1:1"),
        (["explain", "x", "--from=tempo+http://127.0.0.1:70000"], "70000"),
        (["explain", "x", "--from=jaeger+http://127.0.0.1:1"], "127.0.0.1:1"),
        (["explain", "x", "--from=mysql+pymysql://k@127.0.0.1:70000/k"], "Port out of"),
        (["explain", "x", "--from=mysql+pymysql://k@127.0.0.1:1/k"], "127.0.0.1:1"),
        (
            ["explain", "--url=http://127.0.0.1:1/v3"],
            "failed: Connection refused. Check",
        ),
    ],
)
def test_failures_have_message_advice_and_exit_code_1(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_USERNAME", "admin")
    monkeypatch.setenv("OS_PASSWORD", "canary")

    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 1
    assert message in result.stderr
    assert "defect" not in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr) < 400


def fail(error: BaseException, *arguments: str) -> tuple[int, str]:
    """Run a command that raises an error; return its exit code and stderr."""

    def raise_it(*_: object) -> str:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pt_query_digest, "create_report", raise_it)
        result = CliRunner().invoke(main, [*arguments, "digest", str(LOG)])
    return result.exit_code, result.stderr


def test_ctrl_c_exits_with_130() -> None:
    assert fail(KeyboardInterrupt()) == (130, "Interrupted.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "--url=http://127.0.0.1:70000/v3"], "70000"),
        (["explain", "--url=word"], "word is no URL of a Keystone"),
        (["load", "token-issue", "--url=word", f"--users={LOG}"], "word is no URL"),
        (["load", "token-isue"], "token-issue"),
        (["up", "--state=/a b"], "Choose a path of letters"),
        (["experiment", "run", "/dev/null"], "/dev/null"),
    ],
)
def test_invalid_input_exits_with_2(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 2
    assert message in result.stderr


def test_unknown_option_exits_with_2_and_help_with_0() -> None:
    unknown = CliRunner().invoke(main, ["digest", "--no-such-option"])

    assert unknown.exit_code == 2
    assert CliRunner().invoke(main, ["digest", "--help"]).exit_code == 0
    assert fail(click.UsageError("x"))[0] == 2


def test_keylag_errors_print_only_their_text() -> None:
    code, message = fail(KeylagError("It is broken. Mend it."))
    debugged = fail(KeylagError("It is broken. Mend it."), "--debug")[1]

    assert (code, message) == (1, "Error: It is broken. Mend it.\n")
    assert "Traceback (most recent call last)" in debugged
    assert debugged.endswith("\nError: It is broken. Mend it.\n")


def test_unexpected_errors_ask_for_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    code, message = fail(ZeroDivisionError("division by zero"))
    monkeypatch.setenv("KEYLAG_DEBUG", "1")

    assert code == 1
    assert message.startswith("Error: ZeroDivisionError: division by zero\n")
    assert "`keylag --debug ...`" in message
    assert "Traceback" not in message
    assert "Traceback" in fail(ZeroDivisionError("division by zero"))[1]


def test_result_is_printed_even_if_the_file_fails() -> None:
    result = CliRunner().invoke(main, ["explain", str(TRACE), "--html=/dev/full"])

    assert "/v3/auth/tokens" in result.stdout


def test_exit_code_page_lists_only_existing_commands() -> None:
    listed = set(re.findall(r"^\| `keylag (\w+)", CODES.read_text(), re.MULTILINE))

    assert set(COMMANDS) >= listed > {"status", "load", "demo"}
    assert "docs/reference/exit-codes.md" in CliRunner().invoke(main, ["-h"]).output


def test_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == "keylag, version 0.1.0\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_child_processes(number: signal.Signals, tmp_path: Path) -> None:
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    # The tests may run below nohup, whose children ignore SIGHUP.
    command = ("env", "--default-signal", KEYLAG, "digest", fifo)
    out = f"--out={tmp_path / 'out'}"
    with subprocess.Popen([*command, out], stderr=subprocess.PIPE) as running:
        # Opening blocks until the command reads the pipe.
        with fifo.open("wb"):
            running.send_signal(number)
            assert running.wait(60) == INTERRUPTED
        assert running.stderr
        assert running.stderr.read() == b"Interrupted.\n"

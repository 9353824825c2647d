"""How commands end: no traceback, a message that helps, and the same exit codes."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from keylag import digest
from keylag.cli import COMMANDS, main
from keylag.command_errors import INTERRUPTED
from keylag.errors import KeylagError
from keylag.state import CHECKOUT

LOG = CHECKOUT / "exporters" / "tests" / "data" / "issue.log"
KEYLAG = Path(sys.executable).with_name("keylag")
TRACE = Path(__file__).parent / "data" / "osprofiler.json"
CODES = CHECKOUT / "docs" / "reference" / "exit-codes.md"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up", "--state=/dev/null/x"], "Not a directory: /dev/null/x. Choose"),
        (
            ["explain", str(TRACE), "--html=/dev/full"],
            "left on device: /dev/full. Make",
        ),
        (
            ["explain", str(TRACE), "--html=/proc/no/x"],
            "No such file or directory: /proc",
        ),
        (["digest", str(LOG), "--out=/dev/full"], "left on device: /dev/full. Make"),
        (["digest", str(LOG), "--out=/proc/no/x"], "No such file or directory: /proc"),
        (
            ["trace", "validate", "--state=/dev/null/x"],
            "No stack is up in /dev/null/x.",
        ),
        (["explain", "x", "--from=redis://127.0.0.1:70000"], "70000"),
        (["explain", "x", "--from=redis://127.0.0.1:1"], "127.0.0.1:1"),
        (["explain", "x", "--from=tempo+http://127.0.0.1:70000"], "70000"),
        (["explain", "x", "--from=jaeger+http://127.0.0.1:1"], "127.0.0.1:1"),
        (["explain", "x", "--from=mysql+pymysql://k@127.0.0.1:70000/k"], "Port out of"),
        (["explain", "x", "--from=mysql+pymysql://k@127.0.0.1:1/k"], "127.0.0.1:1"),
        (["explain", "--url=http://127.0.0.1:1/v3"], "call: Connection refused. Look"),
    ],
)
def test_a_failure_says_what_to_what_and_what_to_do(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a few lines, with exit code 1."""
    monkeypatch.setenv("OS_USERNAME", "admin")
    monkeypatch.setenv("OS_PASSWORD", "canary")

    result = CliRunner().invoke(main, words)

    assert result.exit_code == 1
    assert said in result.stderr
    assert "defect" not in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr) < 400


def fail(error: BaseException, *words: str) -> tuple[int, str]:
    """Run a command that ends with an error; return its code and what it says."""

    def raise_it(*_: object) -> str:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest, "report", raise_it)
        result = CliRunner().invoke(main, [*words, "digest", str(LOG)])
    return result.exit_code, result.stderr


def test_ctrl_c_is_130() -> None:
    """As in every shell."""
    assert fail(KeyboardInterrupt()) == (130, "Interrupted.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["explain", "--url=http://127.0.0.1:70000/v3"], "70000"),
        (["explain", "--url=word"], "word is no URL of a Keystone"),
        (["load", "token-issue", "--url=word", f"--users={LOG}"], "word is no URL"),
        (["load", "token-isue"], "token-issue"),
        (["up", "--state=/a b"], "Choose a path of letters"),
        (["experiment", "run", "/dev/null"], "/dev/null"),
    ],
)
def test_wrong_usage_is_2(words: list[str], said: str) -> None:
    """Nothing was started then."""
    result = CliRunner().invoke(main, words)

    assert result.exit_code == 2
    assert said in result.stderr


def test_usage_is_2_and_help_is_0() -> None:
    """As click has it."""
    unknown = CliRunner().invoke(main, ["digest", "--no-such-option"])

    assert unknown.exit_code == 2
    assert CliRunner().invoke(main, ["digest", "--help"]).exit_code == 0
    assert fail(click.UsageError("x"))[0] == 2


def test_our_own_errors_are_their_text() -> None:
    """Even with --debug the last line says it."""
    code, said = fail(KeylagError("It is broken. Mend it."))
    debugged = fail(KeylagError("It is broken. Mend it."), "--debug")[1]

    assert (code, said) == (1, "Error: It is broken. Mend it.\n")
    assert "Traceback (most recent call last)" in debugged
    assert debugged.endswith("\nError: It is broken. Mend it.\n")


def test_a_defect_asks_to_be_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable shows the traceback, too."""
    code, said = fail(ZeroDivisionError("division by zero"))
    monkeypatch.setenv("KEYLAG_DEBUG", "1")

    assert code == 1
    assert said.startswith("Error: ZeroDivisionError: division by zero\n")
    assert "`keylag --debug ...`" in said
    assert "Traceback" not in said
    assert "Traceback" in fail(ZeroDivisionError("division by zero"))[1]


def test_a_full_disk_does_not_lose_the_report() -> None:
    """What cannot be left in a file has been printed."""
    result = CliRunner().invoke(main, ["explain", str(TRACE), "--html=/dev/full"])

    assert "/v3/auth/tokens" in result.stdout


def test_the_page_of_exit_codes_knows_each_command() -> None:
    """And the help names the page."""
    listed = set(re.findall(r"^\| `keylag (\w+)", CODES.read_text(), re.MULTILINE))

    assert set(COMMANDS) >= listed > {"status", "load", "demo"}
    assert "docs/reference/exit-codes.md" in CliRunner().invoke(main, ["-h"]).output


def test_version() -> None:
    """It is that of the installed package."""
    assert CliRunner().invoke(main, ["--version"]).output == "keylag, version 0.1.0\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_what_was_begun(number: signal.Signals, tmp_path: Path) -> None:
    """However a command is ended, it cleans up."""
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    words = ("digest", fifo, f"--out={tmp_path / 'out'}")
    with subprocess.Popen([KEYLAG, *words], stderr=subprocess.PIPE) as running:
        # Opened for writing once the command's own reader has opened it.
        with fifo.open("wb"):
            running.send_signal(number)
            assert running.wait(60) == INTERRUPTED
        assert running.stderr
        assert running.stderr.read() == b"Interrupted.\n"

"""Starts and stops JMeter: the Java command, its properties and its log."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from keylag.errors import KeylagError
from keylag.paths import SETUP_COMMAND

JAVA_OPTIONS: Final = ("-Xms64m", "-Xmx512m", "-XX:TieredStopAtLevel=1")
"""A small heap, and no C2 compiler, which would take CPU time from Keystone."""
STOP_SECONDS: Final = 10.0
LOG_LINES_SHOWN: Final = 15


class JMeterError(KeylagError):
    """JMeter is missing or failed, or the load did not start."""


def format_properties(values: Mapping[str, str]) -> str:
    """Format values as a Java property file in ASCII."""
    lines = (f"{name}={_escape(value)}\n" for name, value in sorted(values.items()))
    return "".join(lines)


def _escape(value: str) -> str:
    units = value.encode("utf-16-be")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(_escape_unit(high << 8 | low) for high, low in pairs)


def _escape_unit(unit: int) -> str:
    text = chr(unit)
    return text if text.isascii() and text.isalnum() else f"\\u{unit:04x}"


def find_java_and_jar(home: Path) -> tuple[str, Path]:
    """Return the paths of Java and JMeter's jar; raises JMeterError if missing."""
    java = shutil.which("java")
    if java is None:
        message = (
            "JMeter needs Java, and there is no `java` on the PATH. Run "
            f"`{SETUP_COMMAND}` to install it."
        )
        raise JMeterError(message)
    jar = home / "bin" / "ApacheJMeter.jar"
    if not jar.is_file():
        message = f"{home} has no JMeter. Run `{SETUP_COMMAND}` to install it."
        raise JMeterError(message)
    return java, jar


def java_command(
    home: Path, scratch: Path, options: Sequence[str] = ()
) -> list[str | Path]:
    """Return the command that starts JMeter; raises JMeterError if it is missing."""
    java, jar = find_java_and_jar(home)
    # Java keeps its preferences in the user's home folder by default.
    return [
        java,
        *JAVA_OPTIONS,
        "-Djava.awt.headless=true",
        f"-Djava.util.prefs.userRoot={scratch}",
        f"-Djava.util.prefs.systemRoot={scratch}",
        *options,
        "-jar",
        jar.resolve(),
    ]


def groovy_command(home: Path, script: Path) -> list[str | Path]:
    """Return the command that runs a script with JMeter's classes."""
    java, _ = find_java_and_jar(home)
    classes = f"{home}/lib/*:{home}/lib/ext/*"
    return [java, *JAVA_OPTIONS, "-cp", classes, "groovy.ui.GroovyMain", script]


@contextmanager
def jmeter_process(
    command: Sequence[str | Path], *, cwd: Path, out: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run JMeter while the `with` body runs; its output is `out`/jmeter.out."""
    # In its own session JMeter does not receive Ctrl-C; `stop` ends it.
    with (out / "jmeter.out").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={key: value for key, value in os.environ.items() if key != "CLASSPATH"},
        )
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM; after STOP_SECONDS, SIGKILL."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_log_lines(path: Path) -> list[str]:
    """Return the last LOG_LINES_SHOWN lines of a log."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return text.splitlines()[-LOG_LINES_SHOWN:]

"""Runs a load plan with JMeter in non-GUI mode.

    load = Load(plans.find("token-issue"), {"port": "5000", "users_file": "users.csv"})
    result = run(load, home=jmeter_home, out=Path("out/load"))
    samples, warnings = jtl.read_samples(result.samples)

A run writes `samples.jtl`, `jmeter.log` and `load.properties` (the properties
without secrets) to its folder.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from keylag.errors import KeylagError
from keylag.jmeter_progress import JtlProgress, Progress
from keylag.load_plans import SECRET_PROPERTIES, LoadPlan
from keylag.paths import DEPLOY
from keylag.state import write_private

USER_PROPERTIES: Final = DEPLOY / "jmeter" / "user.properties"

JAVA_OPTIONS: Final = ("-Xms64m", "-Xmx512m", "-XX:TieredStopAtLevel=1")
"""A small heap, and no C2 compiler, which would take CPU time from Keystone."""
POLL_SECONDS: Final = 0.2
STOP_SECONDS: Final = 10.0
LOG_LINES_SHOWN: Final = 15


class JMeterError(KeylagError):
    """JMeter is missing or failed, or the load did not start."""


@dataclass(frozen=True)
class Load:
    """A plan with values for its public and its secret properties.

    `secrets` reach JMeter in a private file, which is removed after the run.
    """

    plan: LoadPlan
    properties: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The files of a run; `interrupted` if Ctrl-C or `should_stop` ended it early."""

    samples: Path
    log: Path
    interrupted: bool


def run(
    load: Load,
    *,
    home: Path,
    out: Path,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
    should_stop: Callable[[Progress], bool] = lambda _progress: False,
) -> LoadResult:
    """Run a plan to its end, or until Ctrl-C; samples so far are kept.

    `home` is the folder with bin/ApacheJMeter.jar.  `on_progress` and `should_stop`
    are called several times a second; the run ends once `should_stop` returns true.

    Raises PlanError for unknown properties and invalid values, and JMeterError if
    JMeter or Java is missing, JMeter fails, or the load does not start.
    """
    load.plan.validate({**load.properties, **load.secrets})
    _reject_public_secrets(load.properties)
    java, jar = find_java_and_jar(home)
    result = _prepare_output(out.resolve())
    progress = JtlProgress(result.samples, load.plan.expected_requests(load.properties))
    with tempfile.TemporaryDirectory(prefix="keylag-load-") as scratch:
        command = [
            *_java_command(java, scratch, jar),
            *_jmeter_options(load, result, Path(scratch)),
        ]
        with _jmeter_process(command, result.samples.parent) as process:
            interrupted = _wait_with_progress(
                process, progress, on_progress, should_stop
            )
    if interrupted:
        return replace(result, interrupted=True)
    _check_result(process, result, progress)
    return result


def _prepare_output(out: Path) -> LoadResult:
    out.mkdir(parents=True, exist_ok=True)
    result = LoadResult(out / "samples.jtl", out / "jmeter.log", interrupted=False)
    for old in (result.samples, result.log):
        old.unlink(missing_ok=True)
    return result


def _jmeter_options(load: Load, result: LoadResult, scratch: Path) -> list[str | Path]:
    public = result.samples.with_name("load.properties")
    public.write_text(format_properties(load.properties), encoding="ascii")
    private = scratch / "secret.properties"
    write_private(private, format_properties(load.secrets))
    return [
        *("-n", "-t", load.plan.path, "-l", result.samples, "-j", result.log),
        *("-q", USER_PROPERTIES, "-q", public, "-q", private),
    ]


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


def _reject_public_secrets(properties: Mapping[str, str]) -> None:
    found = [name for name in SECRET_PROPERTIES if name in properties]
    if found:
        message = (
            f"{', '.join(found)} must not be a public property: "
            "others may read the file of public properties."
        )
        raise JMeterError(message)


def find_java_and_jar(home: Path) -> tuple[str, Path]:
    """Return the paths of Java and JMeter's jar; raises JMeterError if missing."""
    java = shutil.which("java")
    if java is None:
        message = (
            "JMeter needs Java, and there is no `java` on the PATH. Install it with: "
            "apt-get install --no-install-recommends openjdk-17-jre-headless"
        )
        raise JMeterError(message)
    jar = home / "bin" / "ApacheJMeter.jar"
    if not jar.is_file():
        message = f"{home} has no JMeter. Run `keylag setup` to install it."
        raise JMeterError(message)
    return java, jar


def _java_command(java: str, scratch: str, jar: Path) -> list[str | Path]:
    # Java keeps its preferences in the user's home folder by default.
    return [
        java,
        *JAVA_OPTIONS,
        "-Djava.awt.headless=true",
        f"-Djava.util.prefs.userRoot={scratch}",
        f"-Djava.util.prefs.systemRoot={scratch}",
        "-jar",
        jar.resolve(),
    ]


@contextmanager
def _jmeter_process(
    command: list[str | Path], out: Path
) -> Iterator[subprocess.Popen[bytes]]:
    # In its own session JMeter does not receive Ctrl-C; `_stop` ends it.
    with (out / "jmeter.out").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=out,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={key: value for key, value in os.environ.items() if key != "CLASSPATH"},
        )
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_with_progress(
    process: subprocess.Popen[bytes],
    jtl: JtlProgress,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[Progress], bool],
) -> bool:
    """Return whether the run was ended early."""
    try:
        while process.poll() is None:
            progress = jtl.poll()
            on_progress(progress)
            if should_stop(progress):
                _stop(process)
                return True
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        _stop(process)
        return True
    finally:
        on_progress(jtl.poll())
    return False


def _check_result(
    process: subprocess.Popen[bytes], result: LoadResult, progress: JtlProgress
) -> None:
    if process.returncode != 0 or not result.samples.exists():
        raise JMeterError(_crash_message(process.returncode, result.log))
    if progress.done == 0:
        reason = progress.first_failure or f"see {result.log}"
        message = (
            f"The load did not start: {reason}. Check the URL, and the names and "
            "passwords of the users and of the service user."
        )
        raise JMeterError(message)


def _crash_message(code: int, log: Path) -> str:
    logs = [path for path in (log, log.with_name("jmeter.out")) if path.exists()]
    lines = [f"  {line}" for path in logs for line in last_log_lines(path)]
    advice = (
        f"The whole log: {log}. If it names a property or a file, set that with --set "
        "or --users. If memory is short, close other programs and try again."
    )
    start = f"JMeter failed with exit code {code}. The end of its log:"
    return "\n".join([start, *lines, advice])


def last_log_lines(path: Path) -> list[str]:
    """Return the last LOG_LINES_SHOWN lines of a log."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return text.splitlines()[-LOG_LINES_SHOWN:]

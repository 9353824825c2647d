"""Runs a load plan with JMeter, without its window.

    load = Load(plans.find("token-issue"), {"port": "5000", "users_file": "users.csv"})
    result = run(load, home=jmeter_home, out=Path("out/load"))
    samples, notes = jtl.read(result.samples)

A run leaves `samples.jtl`, `jmeter.log` and `load.properties` (what was asked
for, without secrets) in its folder.
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
from keylag.follow import Follower, Progress
from keylag.plans import SECRET, Plan
from keylag.state import DEPLOY, write_private

USER_PROPERTIES: Final = DEPLOY / "jmeter" / "user.properties"

JAVA_OPTIONS: Final = ("-Xms64m", "-Xmx512m", "-XX:TieredStopAtLevel=1")
"""A small heap, and no second compiler that takes the processor from Keystone."""
POLL_SECONDS: Final = 0.2
STOP_SECONDS: Final = 10.0
LOG_LINES_SHOWN: Final = 15


class JMeterError(KeylagError):
    """JMeter could not be run; the text says why and what to do."""


@dataclass(frozen=True)
class Load:
    """What to send: a plan, its open properties, and those nobody may read.

    `secrets` reach JMeter by a private file, which is removed after the run.
    """

    plan: Plan
    properties: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Result:
    """What a run left; `interrupted` if Ctrl-C or `is_over` ended it early."""

    samples: Path
    log: Path
    interrupted: bool


def run(
    load: Load,
    *,
    home: Path,
    out: Path,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
    is_over: Callable[[Progress], bool] = lambda _progress: False,
) -> Result:
    """Run a plan to its end, or until Ctrl-C; the samples so far are kept.

    `is_over` is asked several times a second and may end it, too.

    `home` is JMeter's own folder (with bin/ApacheJMeter.jar).  Raises PlanError
    for a property the plan does not take, or not with this value, JMeterError if
    JMeter or Java is missing, if JMeter dies, or if the load never began.
    """
    load.plan.check({**load.properties, **load.secrets})
    _refuse_open_secrets(load.properties)
    java, jar = programs(home)
    result = _fresh(out.resolve())
    follower = Follower(result.samples, load.plan.expected(load.properties))
    with tempfile.TemporaryDirectory(prefix="keylag-load-") as scratch:
        command = [*_java(java, scratch, jar), *_options(load, result, Path(scratch))]
        with _started(command, result.samples.parent) as process:
            interrupted = _follow(process, follower, on_progress, is_over)
    if interrupted:
        return replace(result, interrupted=True)
    _check(process, result, follower)
    return result


def _fresh(out: Path) -> Result:
    """Make the folder ready; samples of a former run there are removed."""
    out.mkdir(parents=True, exist_ok=True)
    result = Result(out / "samples.jtl", out / "jmeter.log", interrupted=False)
    for old in (result.samples, result.log):
        old.unlink(missing_ok=True)
    return result


def _options(load: Load, result: Result, scratch: Path) -> list[str | Path]:
    asked = result.samples.with_name("load.properties")
    asked.write_text(as_properties(load.properties), encoding="ascii")
    private = scratch / "secret.properties"
    write_private(private, as_properties(load.secrets))
    return [
        *("-n", "-t", load.plan.path, "-l", result.samples, "-j", result.log),
        *("-q", USER_PROPERTIES, "-q", asked, "-q", private),
    ]


def as_properties(values: Mapping[str, str]) -> str:
    """Write values in the format of Java's property files, ASCII only."""
    lines = (f"{name}={_escaped(value)}\n" for name, value in sorted(values.items()))
    return "".join(lines)


def _escaped(value: str) -> str:
    units = value.encode("utf-16-be")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(_character(high << 8 | low) for high, low in pairs)


def _character(unit: int) -> str:
    text = chr(unit)
    return text if text.isascii() and text.isalnum() else f"\\u{unit:04x}"


def _refuse_open_secrets(properties: Mapping[str, str]) -> None:
    found = [name for name in SECRET if name in properties]
    if found:
        message = (
            f"{', '.join(found)} must not be among the open properties, "
            "which are written to a file that others may read."
        )
        raise JMeterError(message)


def programs(home: Path) -> tuple[str, Path]:
    """Return Java and JMeter's jar; raises JMeterError if one is missing."""
    java = shutil.which("java")
    if java is None:
        message = (
            "There is no java on the PATH, and JMeter needs it. Install it with: "
            "apt-get install --no-install-recommends openjdk-17-jre-headless"
        )
        raise JMeterError(message)
    jar = home / "bin" / "ApacheJMeter.jar"
    if not jar.is_file():
        message = f"There is no JMeter in {home}. `keylag setup` puts one together."
        raise JMeterError(message)
    return java, jar


def _java(java: str, scratch: str, jar: Path) -> list[str | Path]:
    """Keep Java small, windowless, and its preferences out of the user's home."""
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
def _started(command: list[str | Path], out: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start JMeter in a session of its own, so that Ctrl-C reaches us alone."""
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


def _follow(
    process: subprocess.Popen[bytes],
    follower: Follower,
    on_progress: Callable[[Progress], None],
    is_over: Callable[[Progress], bool],
) -> bool:
    """Report until JMeter ends; returns whether it was ended early."""
    try:
        while process.poll() is None:
            seen = follower.look()
            on_progress(seen)
            if is_over(seen):
                _stop(process)
                return True
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        _stop(process)
        return True
    finally:
        on_progress(follower.look())
    return False


def _check(
    process: subprocess.Popen[bytes], result: Result, follower: Follower
) -> None:
    if process.returncode != 0 or not result.samples.exists():
        raise JMeterError(_death(process.returncode, result.log))
    if follower.done == 0:
        reason = follower.failure or f"see {result.log}"
        message = (
            f"The load never began: {reason}. Look at the URL, and at the users' and "
            "the service user's names and passwords."
        )
        raise JMeterError(message)


def _death(code: int, log: Path) -> str:
    said = [path for path in (log, log.with_name("jmeter.out")) if path.exists()]
    lines = [f"  {line}" for path in said for line in tail(path)]
    advice = (
        f"All of it: {log}. If it names a property or a file, give that with --set "
        "or --users; if memory, close other programs and try again."
    )
    start = f"JMeter ended with code {code}. The end of its log:"
    return "\n".join([start, *lines, advice])


def tail(path: Path) -> list[str]:
    """Return the last lines of a log."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return text.splitlines()[-LOG_LINES_SHOWN:]

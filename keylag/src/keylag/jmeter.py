"""Runs a load plan with JMeter in non-GUI mode.

    load = Load(find_plan("token-issue"), {"port": "5000", "users_file": "users.csv"})
    result = run(load, home=jmeter_home, out=Path("out/load"))
    samples, warnings = jtl.read_samples(result.samples)

A run writes `samples.jtl`, `jmeter.log` and `load.properties` (the properties
without secrets) to its folder.
"""

import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from keylag.jmeter_process import (
    JMeterError,
    format_properties,
    java_command,
    jmeter_process,
    last_log_lines,
)
from keylag.jmeter_progress import JtlProgress, Progress
from keylag.jmeter_run import LocalRun
from keylag.load_plans import SECRET_PROPERTIES, LoadPlan
from keylag.paths import DEPLOY
from keylag.state import write_private

USER_PROPERTIES: Final = DEPLOY / "jmeter" / "user.properties"

POLL_SECONDS: Final = 0.2


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
    failure: str = ""
    """Why the run could not go on."""


def run(  # noqa: PLR0913 - one for each part of a run
    load: Load,
    *,
    home: Path,
    out: Path,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
    should_stop: Callable[[Progress], bool] = lambda _progress: False,
    sender: LocalRun | None = None,
) -> LoadResult:
    """Run a plan to its end, or until Ctrl-C; samples so far are kept.

    `home` is the folder with bin/ApacheJMeter.jar.  `on_progress` and `should_stop`
    are called several times a second; the run ends once `should_stop` returns true.
    `sender` is a RemoteRun if engines send the load.

    Raises PlanError for unknown properties and invalid values, and JMeterError if
    JMeter or Java is missing, JMeter fails, or the load does not start.
    """
    load.plan.validate({**load.properties, **load.secrets})
    _reject_public_secrets(load.properties)
    sender = sender or LocalRun()
    result = _prepare_output(out.resolve())
    expected = load.plan.expected_requests(load.properties, len(sender.engines) or 1)
    progress = JtlProgress(result.samples, expected)
    with tempfile.TemporaryDirectory(prefix="keylag-load-") as folder:
        scratch = Path(folder)
        out = result.samples.parent
        command = [
            *java_command(home, scratch, sender.java_options()),
            *_jmeter_options(load, result, scratch, sender),
        ]
        cwd = sender.working_folder(scratch, out)
        with jmeter_process(command, cwd=cwd, out=out) as process:
            result = _wait_with_progress(
                process, result, progress, on_progress, should_stop, sender
            )
    if not (result.interrupted or result.failure):
        _check_result(process, result, progress, sender)
    return result


def _prepare_output(out: Path) -> LoadResult:
    out.mkdir(parents=True, exist_ok=True)
    result = LoadResult(out / "samples.jtl", out / "jmeter.log", interrupted=False)
    for old in (result.samples, result.log):
        old.unlink(missing_ok=True)
    return result


def _jmeter_options(
    load: Load, result: LoadResult, scratch: Path, sender: LocalRun
) -> list[str | Path]:
    public = result.samples.with_name("load.properties")
    public.write_text(format_properties(load.properties), encoding="ascii")
    private = scratch / "secret.properties"
    secrets = {**load.secrets, **sender.private_properties(scratch)}
    write_private(private, format_properties(secrets))
    return [
        *("-n", "-t", load.plan.path, "-l", result.samples, "-j", result.log),
        *("-q", USER_PROPERTIES, "-q", private),
        *sender.options(public, scratch),
    ]


def _reject_public_secrets(properties: Mapping[str, str]) -> None:
    found = [name for name in SECRET_PROPERTIES if name in properties]
    if found:
        message = (
            f"{', '.join(found)} must not be a public property: "
            "others may read the file of public properties."
        )
        raise JMeterError(message)


def _wait_with_progress(  # noqa: PLR0913, PLR0917 - one for each part of a run
    process: subprocess.Popen[bytes],
    result: LoadResult,
    jtl: JtlProgress,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[Progress], bool],
    sender: LocalRun,
) -> LoadResult:
    """Return the result, with why the run ended early."""
    try:
        while process.poll() is None:
            progress = jtl.poll()
            on_progress(progress)
            if failure := sender.watch(result.log):
                sender.stop(process)
                return replace(result, failure=failure)
            if should_stop(progress):
                sender.stop(process)
                return replace(result, interrupted=True)
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        sender.stop(process)
        return replace(result, interrupted=True)
    finally:
        on_progress(jtl.poll())
    return result


def _check_result(
    process: subprocess.Popen[bytes],
    result: LoadResult,
    progress: JtlProgress,
    sender: LocalRun,
) -> None:
    if process.returncode != 0 or not result.samples.exists():
        raise JMeterError(
            sender.explain(result.log) or _crash_message(process.returncode, result.log)
        )
    if progress.done == 0:
        raise JMeterError(_not_started(progress.first_failure, result.log, sender))


def _not_started(failure: str, log: Path, sender: LocalRun) -> str:
    if failure:
        return f"The load did not start: {failure}. {sender.advice}"
    return (
        "The load did not start: no request of its set-up failed, and none followed. "
        "A busy machine needs a longer load, such as --set duration_seconds=60. "
        f"JMeter's log: {log}"
    )


def _crash_message(code: int, log: Path) -> str:
    logs = [path for path in (log, log.with_name("jmeter.out")) if path.exists()]
    lines = [f"  {line}" for path in logs for line in last_log_lines(path)]
    advice = (
        f"The whole log: {log}. If it names a property or a file, set that with --set "
        "or --users. If memory is short, close other programs and try again."
    )
    start = f"JMeter failed with exit code {code}. The end of its log:"
    return "\n".join([start, *lines, advice])

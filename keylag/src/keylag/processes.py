"""Starts, finds and stops the processes of stacks.

Every process of a stack has the stack's folder in its environment.  This variable
alone identifies it, also after a crash or the loss of a file.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from keylag.errors import KeylagError

STACK_VARIABLE = "KEYLAG_STACK"
SERVICE_VARIABLE = "KEYLAG_SERVICE"
GRACE_SECONDS = 15.0
"""How long a process may take to end after SIGTERM, before SIGKILL."""


class CommandError(KeylagError):
    """A helper command failed."""


@dataclass(frozen=True)
class StackProcess:
    """A live process of a stack."""

    stack: Path
    service: str
    process: psutil.Process


def stack_variables(folder: Path, service: str) -> dict[str, str]:
    """Return the environment variables that identify a process of a stack."""
    return {STACK_VARIABLE: str(folder), SERVICE_VARIABLE: service}


def start_server(
    command: Sequence[str | Path], env: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a server in its own session and append its output to a log.

    Its own session protects it from Ctrl-C.  When this returns, `find_processes` finds
    the process.  Raises OSError.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(argument) for argument in command],
            env=dict(env),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _await_environment(process)
    return process


def _await_environment(process: subprocess.Popen[bytes]) -> None:
    # The environment of a new process is empty until its program is loaded.
    with suppress(psutil.Error):
        fresh = psutil.Process(process.pid)
        while process.poll() is None and not fresh.environ():
            time.sleep(0.001)


def run_and_wait(
    command: Sequence[str | Path], env: Mapping[str, str], log: Path
) -> None:
    """Run a helper command until it ends; raises CommandError if it fails."""
    process = start_server(command, env, log)
    try:
        code = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    if code != 0:
        message = f"`{' '.join(map(str, command))}` failed with exit code {code}"
        raise CommandError(message)


def find_processes(
    *, stack: Path | None = None, below: Path | None = None, service: str = ""
) -> list[StackProcess]:
    """Return the live processes of one stack, or of all stacks below a folder.

    With `service`, only those of one service.
    """
    found = [one for one in map(_stack_process, psutil.process_iter()) if one]
    return [
        one
        for one in found
        if (one.stack == stack or (below and one.stack.is_relative_to(below)))
        and service in {"", one.service}
    ]


def _stack_process(process: psutil.Process) -> StackProcess | None:
    try:
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return None
        env = process.environ()
    except (psutil.Error, OSError):
        return None
    if STACK_VARIABLE not in env:
        return None
    return StackProcess(
        Path(env[STACK_VARIABLE]), env.get(SERVICE_VARIABLE, "?"), process
    )


def without_children(found: Iterable[StackProcess]) -> list[StackProcess]:
    """Return the processes whose parent is not among them."""
    found = list(found)
    pids = {one.process.pid for one in found}
    return [one for one in found if _parent_pid(one.process) not in pids]


def _parent_pid(process: psutil.Process) -> int:
    try:
        return process.ppid()
    except psutil.Error:
        return 0


def stop_processes(found: Sequence[StackProcess], grace: float = GRACE_SECONDS) -> None:
    """Send SIGTERM, wait `grace` seconds, then kill the remaining processes."""
    for one in without_children(found):
        _ignore_ended(one.process.terminate)
    processes = [one.process for one in found]
    _, alive = psutil.wait_procs(processes, timeout=grace)
    for process in alive:
        _ignore_ended(process.kill)
    psutil.wait_procs(alive, timeout=GRACE_SECONDS)


def _ignore_ended(action: Callable[[], None]) -> None:
    with suppress(psutil.Error):
        action()

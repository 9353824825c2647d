"""Start processes that can be found again, find them, and stop them.

Every process of a stack carries the stack's folder in its environment.  That mark
is all that `down` goes by: it survives a crash, a lost file and a reboot, and no
other process has it.
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

STACK_MARK = "KEYLAG_STACK"
SERVICE_MARK = "KEYLAG_SERVICE"
GRACE_SECONDS = 15.0
"""How long a process may take to end by itself before it is killed."""


class CommandError(KeylagError):
    """A helper program ended with an error; the text names it and its log."""


@dataclass(frozen=True)
class Marked:
    """A live process that belongs to a stack."""

    stack: Path
    service: str
    process: psutil.Process


def marks(folder: Path, service: str) -> dict[str, str]:
    """Return the variables that tie a process to its stack."""
    return {STACK_MARK: str(folder), SERVICE_MARK: service}


def start(
    command: Sequence[str | Path], env: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a server in a session of its own, its output added to a log.

    In its own session Ctrl-C does not reach it: the command that started it
    decides what becomes of it.  From its return on `find` knows the process.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
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
    """Wait out the moment in which a new program's environment reads as empty."""
    with suppress(psutil.Error):
        fresh = psutil.Process(process.pid)
        while process.poll() is None and not fresh.environ():
            time.sleep(0.001)


def run_to_end(
    command: Sequence[str | Path], env: Mapping[str, str], log: Path
) -> None:
    """Run a helper to its end; raises CommandError if it fails."""
    process = start(command, env, log)
    try:
        code = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    if code != 0:
        message = f"`{' '.join(map(str, command))}` ended with code {code}"
        raise CommandError(message)


def find(*, stack: Path | None = None, below: Path | None = None) -> list[Marked]:
    """Return the live processes of one stack, or of all stacks below a folder."""
    found = [mark for mark in map(_marked, psutil.process_iter()) if mark]
    return [
        mark
        for mark in found
        if mark.stack == stack or (below and mark.stack.is_relative_to(below))
    ]


def _marked(process: psutil.Process) -> Marked | None:
    """Read a process's marks; None if it has none or is not ours to read."""
    try:
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return None
        env = process.environ()
    except (psutil.Error, OSError):
        return None
    if STACK_MARK not in env:
        return None
    return Marked(Path(env[STACK_MARK]), env.get(SERVICE_MARK, "?"), process)


def roots(found: Iterable[Marked]) -> list[Marked]:
    """Leave out those whose parent is in the list too: workers go with a master."""
    found = list(found)
    pids = {mark.process.pid for mark in found}
    return [mark for mark in found if _parent(mark.process) not in pids]


def _parent(process: psutil.Process) -> int:
    try:
        return process.ppid()
    except psutil.Error:
        return 0


def stop(found: Sequence[Marked], grace: float = GRACE_SECONDS) -> None:
    """Ask the processes to end, wait `grace` seconds, then kill what is left."""
    for mark in roots(found):
        _quietly(mark.process.terminate)
    everyone = [mark.process for mark in found]
    _, left = psutil.wait_procs(everyone, timeout=grace)
    for process in left:
        _quietly(process.kill)
    psutil.wait_procs(left, timeout=GRACE_SECONDS)


def _quietly(act: Callable[[], None]) -> None:
    """Do it; a process that is gone by now is what was wanted."""
    with suppress(psutil.Error):
        act()

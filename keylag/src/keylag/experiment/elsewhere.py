"""The executor of a Keystone that is there already: arms are made by commands.

What such a command leaves behind from arm to arm, a warm database or a filled cache,
is part of what is measured.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import requests

from keylag import load_target
from keylag.experiment import loads
from keylag.experiment.plan import Elsewhere, Plan
from keylag.experiment.run import Sent
from keylag.experiment.schedule import Block
from keylag.launcher import StackError
from keylag.load_target import LoadTarget

SWITCH_SECONDS: Final = 600.0
"""How long a switch may take."""
ANSWER_SECONDS: Final = 120.0
"""How long Keystone may take after it until it answers."""
POLL_SECONDS: Final = 0.5
WORDS_SHOWN: Final = 500


def where(there: Elsewhere) -> LoadTarget:
    """Return where the load goes; raises TargetError if that is not known."""
    return load_target.from_url(there.url, Path(there.users))


class Switched:
    """See keylag.experiment.run.Executor; it is left as the base."""

    def __init__(self, plan: Plan, there: Elsewhere) -> None:
        self._plan = plan
        self._there = there
        self._where = where(there)

    def start(self) -> None:
        """Make it the base; raises StackError if that cannot be."""
        self._switch(self._plan.base)

    def renew(self, block: Block) -> None:
        """Leave it; who wants a fresh Keystone restarts it in the switch."""

    def send(self, block: Block, out: Path) -> dict[str, Sent]:
        """Make it one arm after the other and load it; what goes wrong is told."""
        brought: dict[str, Sent] = {}
        for arm in block.arms:
            try:
                self._switch(arm)
            except StackError as error:
                brought[arm] = Sent([], [str(error)])
            else:
                brought |= loads.load(self._plan, block, {arm: self._where}, out)
        return brought

    def stop(self) -> None:
        """Make it the base again."""
        self._switch(self._plan.base)

    def _switch(self, name: str) -> None:
        run_switch(self._plan.arms[name].switch)
        self._await_answer()

    def _await_answer(self) -> None:
        deadline = time.monotonic() + ANSWER_SECONDS
        url = f"{self._there.url.rstrip('/').removesuffix('/v3')}/v3"
        while not _answers(url):
            if time.monotonic() > deadline:
                message = f"{url} did not answer within {ANSWER_SECONDS:.0f} s"
                raise StackError(message)
            time.sleep(POLL_SECONDS)


def run_switch(command: str) -> None:
    """Run a command to its end; raises StackError if it fails or takes too long.

    What a command that succeeds leaves running may be Keystone itself, and stays.
    Such a process may keep the output open for ever, so that goes to a file: nobody
    waits for the end of a pipe.
    """
    shell = ["sh", "-c", command]
    with TemporaryFile() as output:
        process = subprocess.Popen(
            shell,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            if code := _await_end(process):
                raise subprocess.CalledProcessError(code, shell)
        except subprocess.SubprocessError as error:
            output.seek(0)
            said = output.read().decode(errors="replace")[-WORDS_SHOWN:]
            message = f"{error} It said: {said}"
            raise StackError(message) from error


def _await_end(process: subprocess.Popen[bytes]) -> int:
    """Return its exit code; kills its whole session's group if it does not end."""
    try:
        return process.wait(SWITCH_SECONDS)
    except BaseException:  # Ctrl-C as well: it does not reach another session
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _answers(url: str) -> bool:
    # The load plans do not check certificates either.
    try:
        answer = requests.get(url, timeout=POLL_SECONDS * 4, verify=False)  # noqa: S501
    except requests.RequestException:
        return False
    return bool(answer.status_code < requests.codes.server_error)

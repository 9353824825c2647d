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

from keylag import target
from keylag.experiment import interleaved_load
from keylag.experiment.plan import Plan, RemoteKeystone
from keylag.experiment.run import ArmResult
from keylag.experiment.schedule import Round
from keylag.launch import StackError
from keylag.target import Target

SWITCH_TIMEOUT_SECONDS: Final = 600.0
"""How long a switch may take."""
ANSWER_TIMEOUT_SECONDS: Final = 120.0
"""How long Keystone may take after it until it answers."""
POLL_INTERVAL_SECONDS: Final = 0.5
OUTPUT_SHOWN_CHARACTERS: Final = 500


def load_target(remote: RemoteKeystone) -> Target:
    """Return where the load goes; raises TargetError if that is not known."""
    return target.of_url(remote.url, Path(remote.users))


class RemoteExecutor:
    """See keylag.experiment.run.Executor; it is left as the base."""

    def __init__(self, plan: Plan, remote: RemoteKeystone) -> None:
        self._plan = plan
        self._remote = remote
        self._target = load_target(remote)

    def start(self) -> None:
        """Make it the base; raises StackError if that cannot be."""
        self._switch_to(self._plan.base)

    def begin_round(self, this_round: Round) -> None:
        """Leave it; who wants a fresh Keystone restarts it in the switch."""

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Make it one arm after the other and load it; what goes wrong is told."""
        results: dict[str, ArmResult] = {}
        for arm in this_round.arms:
            try:
                self._switch_to(arm)
            except StackError as error:
                results[arm] = ArmResult([], [str(error)])
            else:
                results |= interleaved_load.run_load(
                    self._plan, this_round, {arm: self._target}, out
                )
        return results

    def stop(self) -> None:
        """Make it the base again."""
        self._switch_to(self._plan.base)

    def _switch_to(self, name: str) -> None:
        run_switch(self._plan.arms[name].switch)
        self._wait_for_keystone()

    def _wait_for_keystone(self) -> None:
        deadline = time.monotonic() + ANSWER_TIMEOUT_SECONDS
        url = f"{self._remote.url.rstrip('/').removesuffix('/v3')}/v3"
        while not _answers(url):
            if time.monotonic() > deadline:
                message = f"{url} did not answer within {ANSWER_TIMEOUT_SECONDS:.0f} s"
                raise StackError(message)
            time.sleep(POLL_INTERVAL_SECONDS)


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
            if code := _wait_for_exit(process):
                raise subprocess.CalledProcessError(code, shell)
        except subprocess.SubprocessError as error:
            output.seek(0)
            output_text = output.read().decode(errors="replace")[
                -OUTPUT_SHOWN_CHARACTERS:
            ]
            message = f"{error} It said: {output_text}"
            raise StackError(message) from error


def _wait_for_exit(process: subprocess.Popen[bytes]) -> int:
    """Return its exit code; kills its whole session's group if it does not end."""
    try:
        return process.wait(SWITCH_TIMEOUT_SECONDS)
    except BaseException:  # Ctrl-C as well: it does not reach another session
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _answers(url: str) -> bool:
    # The load plans do not check certificates either.
    try:
        answer = requests.get(url, timeout=POLL_INTERVAL_SECONDS * 4, verify=False)  # noqa: S501
    except requests.RequestException:
        return False
    return bool(answer.status_code < requests.codes.server_error)

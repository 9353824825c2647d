"""Executor for a remote Keystone that shell commands switch between the arms.

State that a command leaves behind for the next arm, such as a warm database or a full
cache, is part of the measurement.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import requests

from keylag import load_target
from keylag.experiment import interleaved_load
from keylag.experiment.plan import Plan, RemoteKeystone
from keylag.experiment.run import ArmResult
from keylag.experiment.schedule import Round
from keylag.launcher import StackError
from keylag.load_target import LoadTarget

SWITCH_TIMEOUT_SECONDS: Final = 600.0
"""Time limit of a switch command."""
ANSWER_TIMEOUT_SECONDS: Final = 120.0
"""How long Keystone may take to answer after a switch command."""
POLL_INTERVAL_SECONDS: Final = 0.5
OUTPUT_SHOWN_CHARACTERS: Final = 500


def remote_target(remote: RemoteKeystone) -> LoadTarget:
    """Return the target of the load; raises TargetError if it is incomplete."""
    return load_target.from_url(remote.url, Path(remote.users))


class RemoteExecutor:
    """Switches one Keystone between the arms, and back to the base at the end.

    `target` is its stack, if it has one.  See keylag.experiment.run.Executor.
    """

    def __init__(
        self, plan: Plan, remote: RemoteKeystone, target: LoadTarget | None = None
    ) -> None:
        self._plan = plan
        self._remote = remote
        self._target = target or remote_target(remote)

    def start(self) -> None:
        """Switch to the base; raises StackError if the command fails."""
        self._switch_to(self._plan.base)

    def begin_round(self, this_round: Round) -> None:
        """Do nothing: a switch command restarts Keystone if the operator wants that."""

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Switch to each arm and send its load; problems are in the results."""
        results: dict[str, ArmResult] = {}
        for arm in this_round.arms:
            try:
                with self.serving(arm) as target:
                    results |= interleaved_load.run_load(
                        self._plan, this_round, {arm: target}, out
                    )
            except StackError as error:
                results[arm] = ArmResult([], [str(error)])
        return results

    @contextmanager
    def serving(self, arm: str) -> Iterator[LoadTarget]:
        """Switch to an arm and yield its target; raises StackError."""
        self._switch_to(arm)
        yield self._target

    def stop(self) -> None:
        """Switch back to the base."""
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
    """Run a switch command; raises StackError if it fails or times out.

    Processes that a successful command leaves behind keep running: Keystone may be one
    of them.  They may keep their output open, so the output goes to a file, since a
    pipe would never end.
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
            message = f"{str(error).removesuffix('.')}. Output: {output_text}"
            raise StackError(message) from error


def _wait_for_exit(process: subprocess.Popen[bytes]) -> int:
    # A command that does not end is killed with its process group.
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

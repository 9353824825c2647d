"""The executor of a Keystone that is there already: arms are made by commands.

What such a command leaves behind from arm to arm, a warm database or a filled cache,
is part of what is measured.
"""

import subprocess
import time
from pathlib import Path
from typing import Final

import requests

from keylag import target
from keylag.experiment import loads
from keylag.experiment.plan import Elsewhere, Plan
from keylag.experiment.run import Sent
from keylag.experiment.schedule import Block
from keylag.launch import StackError
from keylag.target import Target

SWITCH_SECONDS: Final = 600.0
"""How long a switch may take."""
ANSWER_SECONDS: Final = 120.0
"""How long Keystone may take after it until it answers."""
POLL_SECONDS: Final = 0.5
WORDS_SHOWN: Final = 500


def where(there: Elsewhere) -> Target:
    """Return where the load goes; raises TargetError if that is not known."""
    return target.of_url(there.url, Path(there.users))


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
        command = self._plan.arms[name].switch
        try:
            subprocess.run(
                ["sh", "-c", command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=True,
                timeout=SWITCH_SECONDS,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            message = f"{error} It said: {str(error.output or '')[-WORDS_SHOWN:]}"
            raise StackError(message) from error
        self._await_answer()

    def _await_answer(self) -> None:
        deadline = time.monotonic() + ANSWER_SECONDS
        url = f"{self._there.url.rstrip('/').removesuffix('/v3')}/v3"
        while not _answers(url):
            if time.monotonic() > deadline:
                message = f"{url} did not answer within {ANSWER_SECONDS:.0f} s"
                raise StackError(message)
            time.sleep(POLL_SECONDS)


def _answers(url: str) -> bool:
    # The load plans do not check certificates either.
    try:
        answer = requests.get(url, timeout=POLL_SECONDS * 4, verify=False)  # noqa: S501
    except requests.RequestException:
        return False
    return bool(answer.status_code < requests.codes.server_error)

"""Marks in Grafana: which arm was under load from when to when, and in which block."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests

from keylag.experiment.run import Executor, Sent
from keylag.experiment.schedule import Turn

TOKEN: Final = "KEYLAG_GRAFANA_TOKEN"  # noqa: S105 - the name of a variable
"""The variable with the token of a service account that may write annotations."""
TAGS: Final = ("keylag", "experiment")
PATIENCE_SECONDS: Final = 2.0


@dataclass
class Marked:
    """An executor whose turns Grafana is told; what that costs is between turns."""

    inner: Executor
    url: str
    """Grafana's; user and password may be in it, where there is no token."""
    silent: bool = False
    """Whether Grafana did not take a mark; it is not asked again then."""

    def start(self) -> None:
        """As the inner one."""
        self.inner.start()

    def renew(self, turn: Turn) -> None:
        """As the inner one."""
        self.inner.renew(turn)

    def stop(self) -> None:
        """As the inner one."""
        self.inner.stop()

    def send(self, turn: Turn, out: Path) -> Sent:
        """As the inner one, and mark its time; trouble with that is only noted."""
        begun = time.time()
        sent = self.inner.send(turn, out)
        notes = [] if self.silent else self._mark(turn, begun)
        return Sent(sent.rows, [*sent.notes, *notes])

    def _mark(self, turn: Turn, begun: float) -> list[str]:
        mark = {
            "time": round(begun * 1000),
            "timeEnd": round(time.time() * 1000),
            "tags": [*TAGS, turn.arm],
            "text": f"{turn.arm}, block {turn.block}",
        }
        token = os.environ.get(TOKEN)
        try:
            requests.post(
                f"{self.url.rstrip('/')}/api/annotations",
                json=mark,
                headers={"Authorization": f"Bearer {token}"} if token else {},
                timeout=PATIENCE_SECONDS,
            ).raise_for_status()
        except requests.RequestException as error:
            self.silent = True
            return [f"Grafana took no mark, and is asked no more: {_kind(error)}"]
        return []


def _kind(error: requests.RequestException) -> str:
    """Say what went wrong without the address, which may hold a password."""
    code = "" if error.response is None else f" {error.response.status_code}"
    return f"{type(error).__name__}{code}"

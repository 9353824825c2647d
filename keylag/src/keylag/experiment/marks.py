"""Marks in Grafana: which arm was under load from when to when, and in which block."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests

from keylag.experiment.run import Executor, Sent
from keylag.experiment.samples import Row
from keylag.experiment.schedule import Block

TOKEN: Final = "KEYLAG_GRAFANA_TOKEN"  # noqa: S105 - the name of a variable
"""The variable with the token of a service account that may write annotations."""
TAGS: Final = ("keylag", "experiment")
PATIENCE_SECONDS: Final = 2.0


@dataclass
class Marked:
    """An executor whose blocks Grafana is told; what that costs is between them."""

    inner: Executor
    url: str
    """Grafana's; user and password may be in it, where there is no token."""
    silent: bool = False
    """Whether Grafana did not take a mark; it is not asked again then."""

    def start(self) -> None:
        """As the inner one."""
        self.inner.start()

    def renew(self, block: Block) -> None:
        """As the inner one."""
        self.inner.renew(block)

    def stop(self) -> None:
        """As the inner one."""
        self.inner.stop()

    def send(self, block: Block, out: Path) -> dict[str, Sent]:
        """As the inner one, and mark each arm; trouble with that is only noted."""
        return {
            arm: Sent(sent.rows, [*sent.notes, *self._mark(sent.rows)])
            for arm, sent in self.inner.send(block, out).items()
        }

    def _mark(self, rows: Sequence[Row]) -> list[str]:
        """Mark the time from an arm's first request to its last."""
        if self.silent or not rows:
            return []
        first, last = rows[0], rows[-1]
        mark = {
            "time": round(first.start_seconds * 1000),
            "timeEnd": round((last.start_seconds + last.latency_seconds) * 1000),
            "tags": [*TAGS, first.arm],
            "text": f"{first.arm}, block {first.block}",
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

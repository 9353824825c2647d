"""Marks in Grafana: which arm was under load from when to when, and in which round."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests

from keylag.experiment.run import ArmResult, Executor
from keylag.experiment.samples import Row
from keylag.experiment.schedule import Round

TOKEN_VARIABLE: Final = "KEYLAG_GRAFANA_TOKEN"  # noqa: S105 - the name of a variable
"""The variable with the token of a service account that may write annotations."""
TAGS: Final = ("keylag", "experiment")
TIMEOUT_SECONDS: Final = 2.0


@dataclass
class AnnotatingExecutor:
    """An executor whose rounds Grafana is told; what that costs is between them."""

    inner: Executor
    url: str
    """Grafana's; user and password may be in it, where there is no token."""
    disabled: bool = False
    """Whether Grafana did not take a mark; it is not asked again then."""

    def start(self) -> None:
        """As the inner one."""
        self.inner.start()

    def begin_round(self, this_round: Round) -> None:
        """As the inner one."""
        self.inner.begin_round(this_round)

    def stop(self) -> None:
        """As the inner one."""
        self.inner.stop()

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """As the inner one, and mark each arm; trouble with that is only noted."""
        return {
            arm: ArmResult(sent.rows, [*sent.problems, *self._annotate(sent.rows)])
            for arm, sent in self.inner.run_round(this_round, out).items()
        }

    def _annotate(self, rows: Sequence[Row]) -> list[str]:
        """Mark the time from an arm's first request to its last."""
        if self.disabled or not rows:
            return []
        first, last = rows[0], rows[-1]
        annotation = {
            "time": round(first.start_seconds * 1000),
            "timeEnd": round((last.start_seconds + last.latency_seconds) * 1000),
            "tags": [*TAGS, first.arm],
            "text": f"{first.arm}, round {first.round}",
        }
        token = os.environ.get(TOKEN_VARIABLE)
        try:
            requests.post(
                f"{self.url.rstrip('/')}/api/annotations",
                json=annotation,
                headers={"Authorization": f"Bearer {token}"} if token else {},
                timeout=TIMEOUT_SECONDS,
            ).raise_for_status()
        except requests.RequestException as error:
            self.disabled = True
            return [f"Grafana took no mark, and is asked no more: {_error_name(error)}"]
        return []


def _error_name(error: requests.RequestException) -> str:
    """Say what went wrong without the address, which may hold a password."""
    code = "" if error.response is None else f" {error.response.status_code}"
    return f"{type(error).__name__}{code}"

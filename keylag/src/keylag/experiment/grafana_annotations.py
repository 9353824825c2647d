"""Annotate each round in Grafana, once for each of its arms, and the verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests

from keylag.experiment.grafana_api import Grafana, error_name
from keylag.experiment.run import ArmResult, Executor, ExperimentRun
from keylag.experiment.samples import Row
from keylag.experiment.schedule import Round

TAGS: Final = ("keylag", "experiment")
VERDICT_TAG: Final = "verdict"
TIMEOUT_SECONDS: Final = 2.0


@dataclass
class AnnotatingExecutor:
    """Wraps an executor and annotates its rounds, after the load of each round."""

    inner: Executor
    url: str
    """Base URL of Grafana; may contain user and password in place of a token."""
    disabled: bool = False
    """Set after the first failure, to send no more annotations."""

    def start(self) -> None:
        """Delegate to the inner executor."""
        self.inner.start()

    def begin_round(self, this_round: Round) -> None:
        """Delegate to the inner executor."""
        self.inner.begin_round(this_round)

    def stop(self) -> None:
        """Delegate to the inner executor."""
        self.inner.stop()

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Run the round and annotate its arms; a failure is a problem in the result."""
        return {
            arm: ArmResult(
                result.rows, [*result.problems, *self._annotate(result.rows)]
            )
            for arm, result in self.inner.run_round(this_round, out).items()
        }

    def _annotate(self, rows: Sequence[Row]) -> list[str]:
        if self.disabled or not rows:
            return []
        arm, number = rows[0].arm, rows[0].round
        try:
            _post_region(self.url, rows, [arm], f"{arm}, round {number}")
        except requests.RequestException as error:
            self.disabled = True
            problem = "writing to Grafana failed, so annotations are off from now on"
            return [f"{problem}: {error_name(error)}"]
        return []


def annotate_verdicts(run: ExperimentRun, url: str, verdicts: Sequence[str]) -> None:
    """Annotate the time of a run with its verdicts; a failure is one of its events."""
    try:
        _post_region(url, run.rows, [VERDICT_TAG], "\n".join(verdicts))
    except requests.RequestException as error:
        run.state.events.append(f"no verdicts in Grafana: {error_name(error)}")
        run.folder.save_state(run.state)


def _post_region(url: str, rows: Sequence[Row], tags: Sequence[str], text: str) -> None:
    first, last = rows[0], rows[-1]
    annotation = {
        "time": round(first.start_seconds * 1000),
        "timeEnd": round((last.start_seconds + last.latency_seconds) * 1000),
        "tags": [*TAGS, *tags],
        "text": text,
    }
    Grafana(url, TIMEOUT_SECONDS).post("annotations", annotation)

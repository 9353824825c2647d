"""Keep the dashboard *Keylag / Experiment* of a run as a snapshot in Grafana.

A snapshot has the data of the panels in it, so it shows the arms side by side when
Prometheus has forgotten them.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import requests
from rich.console import Console

from keylag.errors import KeylagError
from keylag.experiment.grafana_api import TOKEN_VARIABLE, Grafana, error_name
from keylag.experiment.grafana_frames import Ask, Period, panel_frames, period_values
from keylag.experiment.run import ExperimentRun
from keylag.paths import DATA
from keylag.steps import show_step

DASHBOARD: Final = DATA / "dashboards" / "generated" / "provisioned" / "experiment.json"
ARMS_PANEL: Final = "Arms"
"""The table with a row for each arm."""
TIMEOUT_SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 60.0
"""After this time the recording rules have seen the last calls."""
ADVICE: Final = {
    requests.codes.bad_request: "Import the dashboard Keylag / Experiment.",
    requests.codes.unauthorized: f"Set {TOKEN_VARIABLE}.",
    requests.codes.forbidden: "The service account needs the role Editor.",
}
"""What to do about an answer to the request for a snapshot."""
SNAPSHOT_SOURCE: Final = {"type": "datasource", "uid": "grafana"}
"""Grafana's own data source, which returns the frames of a query `snapshot`."""

HEADING_HEIGHT: Final = 2
"""Height of the title and the margins of a panel of text, in Grafana's units."""


class SnapshotError(KeylagError):
    """There is nothing to make a snapshot of."""


@dataclass(frozen=True)
class Subject:
    """What a snapshot is about."""

    question: str
    arms: Sequence[str]
    method: str
    """The HTTP method whose calls are shown."""
    verdicts: Sequence[str]
    """A sentence for each arm but the base."""


def keep_snapshot(
    run: ExperimentRun,
    url: str,
    verdicts: Sequence[str],
    console: Console,
    *,
    has_metrics: bool,
) -> None:
    """Make the snapshot of a run; its URL, or why there is none, is in the state.

    `has_metrics` is false if the arms have sent none.
    """
    grafana = Grafana(url, TIMEOUT_SECONDS)
    try:
        _require_metrics(has_metrics=has_metrics)
        with show_step(console, "Waiting for Prometheus, for a snapshot in Grafana"):
            time.sleep(SETTLE_SECONDS)
        run.state.snapshot_url = make_snapshot(
            grafana,
            Subject(
                run.plan.question,
                run.plan.arm_names,
                run.plan.decision.method,
                verdicts,
            ),
            Period(run.rows[0].start_seconds, time.time()),
        )
    except SnapshotError as error:
        run.state.events.append(f"no snapshot in Grafana: {error}")
    except requests.RequestException as error:
        run.state.events.append(f"no snapshot in Grafana: {error_name(error)}")
    except KeyboardInterrupt:
        run.state.events.append("no snapshot in Grafana: it was interrupted")
    run.folder.save_state(run.state)


def _require_metrics(*, has_metrics: bool) -> None:
    if not has_metrics:
        message = "it shows the arms' metrics, which --otlp sends."
        raise SnapshotError(message)


def make_snapshot(grafana: Grafana, subject: Subject, period: Period) -> str:
    """Make a snapshot and return its URL; raises SnapshotError or RequestException."""
    ask = partial(_ask_source, grafana, _prometheus_uid(grafana))
    dashboard = fill_dashboard(subject, period, ask)
    name = f"{dashboard['title']}: {subject.question}"
    try:
        answer = grafana.post("snapshots", {"name": name, "dashboard": dashboard})
    except requests.HTTPError as error:
        advice = ADVICE.get(error.response.status_code, "")
        message = f"{error_name(error)}. {advice}".rstrip()
        raise SnapshotError(message) from error
    return str(answer["url"])


def _prometheus_uid(grafana: Grafana) -> str:
    settings = grafana.get("frontend/settings")
    sources = {
        name: source["uid"]
        for name, source in settings["datasources"].items()
        if source["type"] == "prometheus"
    }
    if not sources:
        message = "it has no data source of the type Prometheus."
        raise SnapshotError(message)
    first = next(iter(sources.values()))
    return str(sources.get(settings["defaultDatasource"], first))


def _ask_source(grafana: Grafana, uid: str, kind: str, parameters: Any) -> Any:
    answer = grafana.get(f"datasources/proxy/uid/{uid}/api/v1/{kind}", parameters)
    return answer["data"]


def fill_dashboard(subject: Subject, period: Period, ask: Ask) -> dict[str, Any]:
    """Return the dashboard with the verdicts, and the arms' calls in its panels.

    Raises SnapshotError if Prometheus has no calls of an arm in this time.
    """
    board: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    variables = board["templating"]["list"]
    values = {one["name"]: one["allValue"] for one in variables if "allValue" in one}
    values |= {"run": "|".join(subject.arms), "method": subject.method}
    values |= period_values(period)
    frames = {
        panel["id"]: panel_frames(panel, values, period, ask)
        for panel in board["panels"]
        if "targets" in panel
    }
    panels = [_with_data(panel, frames) for panel in board["panels"]]
    _require_arms(subject.arms, panels)
    verdicts = _verdicts_panel(subject, panels)
    height = verdicts["gridPos"]["h"]
    return board | {
        "panels": [verdicts, *(_moved_down(panel, height) for panel in panels)],
        "time": {"from": _iso_time(period.start), "to": _iso_time(period.end)},
        "refresh": "",
        "links": [],
        "annotations": {"list": []},
        "templating": {"list": []},
        "snapshot": {"timestamp": _iso_time(period.end)},
    }


def _verdicts_panel(
    subject: Subject, panels: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a panel with room for a line of each verdict."""
    lines = "\n".join(f"- {sentence}" for sentence in subject.verdicts)
    height = HEADING_HEIGHT + len(subject.verdicts)
    return {
        "id": max(panel["id"] for panel in panels) + 1,
        "type": "text",
        "title": subject.question,
        "gridPos": {"x": 0, "y": 0, "w": 24, "h": height},
        "options": {"mode": "markdown", "content": lines},
    }


def _moved_down(panel: Mapping[str, Any], height: int) -> dict[str, Any]:
    position = panel["gridPos"]
    return {**panel, "gridPos": {**position, "y": position["y"] + height}}


def _with_data(
    panel: Mapping[str, Any], frames: Mapping[int, Sequence[Any]]
) -> dict[str, Any]:
    if panel["id"] not in frames:
        return dict(panel)
    target = {
        "refId": "A",
        "datasource": SNAPSHOT_SOURCE,
        "queryType": "snapshot",
        "snapshot": frames[panel["id"]],
    }
    data = {"datasource": SNAPSHOT_SOURCE, "targets": [target], "links": []}
    return {**panel, **data}


def _require_arms(arms: Sequence[str], panels: Sequence[Mapping[str, Any]]) -> None:
    table = next(panel for panel in panels if panel["title"] == ARMS_PANEL)
    found = {
        name
        for frame in table["targets"][0]["snapshot"]
        for column in frame["data"]["values"]
        for name in column
    }
    if missing := [arm for arm in arms if arm not in found]:
        message = (
            f"Prometheus has no calls of {', '.join(missing)} in the time of the run. "
            "Its Keystone sends them with the resource attribute keylag.run."
        )
        raise SnapshotError(message)


def _iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")

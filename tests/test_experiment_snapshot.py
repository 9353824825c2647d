"""The snapshot of an experiment's dashboard: its data, and the snapshot in Grafana."""

import time
from functools import partial
from typing import Any

import pytest
import requests
from conftest import RUN

from keylag.experiment import grafana_frames, grafana_snapshot
from keylag.experiment.grafana_api import Grafana
from keylag.experiment.grafana_frames import Period
from keylag.experiment.grafana_snapshot import (
    SnapshotError,
    fill_dashboard,
    make_snapshot,
)
from keylag.jtl import Sample
from keylag.services import is_installed
from keylag.stack import Stack
from keylag_dashboards import config
from keylag_dev.grafana_page import (
    CHROMIUM,
    new_page,
    open_dashboard,
    read_panels,
    start_browser,
)

pytestmark = pytest.mark.stack

EARLIER_SECONDS = 60
RECORDED_SECONDS = 60
EMPTY = {"Refused and failed calls"}
"""Panels of a healthy run that may have no line of an arm."""


def ask_prometheus(stack: Stack, kind: str, parameters: dict[str, str]) -> Any:
    """Send a query to the stack's Prometheus, without Grafana in between."""
    url = f"{stack.url('prometheus')}/api/v1/{kind}"
    answer = requests.get(url, params=parameters, timeout=30)
    assert answer.ok, answer.text
    return answer.json()["data"]


@pytest.fixture(scope="module")
def period(stack: Stack, called: list[Sample]) -> Period:
    """The time of the load, until the recording rules have seen it."""
    time.sleep(RECORDED_SECONDS)
    start = min(sample.start_seconds for sample in called)
    return Period(start - EARLIER_SECONDS, time.time())


def shown_names(panel: dict[str, Any]) -> set[str]:
    """Return the legends of a filled panel, and the texts in its tables."""
    (target,) = panel["targets"]
    names = set()
    for frame in target["snapshot"]:
        fields, columns = frame["schema"]["fields"], frame["data"]["values"]
        assert len(fields) == len(columns)
        assert len({len(column) for column in columns}) == 1
        names |= {one.get("config", {}).get("displayNameFromDS") for one in fields}
        names |= {value for column in columns for value in column if value == RUN}
    return names


def test_every_panel_of_a_snapshot_has_the_arm_by_name(
    stack: Stack, period: Period
) -> None:
    filled = fill_dashboard([RUN], "POST", period, partial(ask_prometheus, stack))
    panels = [panel for panel in filled["panels"] if panel["type"] != "row"]
    lines = [panel for panel in panels if panel["type"] == "timeseries"]

    without = {panel["title"] for panel in panels if RUN not in shown_names(panel)}
    assert without <= EMPTY
    assert len(panels) - len(lines) == 2
    assert all(
        point is None or point >= 0
        for panel in lines
        for frame in panel["targets"][0]["snapshot"]
        for point in frame["data"]["values"][1]
    )
    assert not any("${" in str(panel["datasource"]) for panel in panels)


def test_arm_without_calls_in_prometheus_is_named(stack: Stack, period: Period) -> None:
    arms = [RUN, "elsewhere"]
    with pytest.raises(SnapshotError, match="has no calls of elsewhere in the time"):
        fill_dashboard(arms, "POST", period, partial(ask_prometheus, stack))


def test_steps_are_those_of_the_recording_rules() -> None:
    fine, coarse = Period(0, 3600), Period(0, 3 * 86400)

    assert fine.step_seconds == config.RECORDING_SECONDS
    assert coarse.step_seconds == config.COARSE_SECONDS
    assert grafana_frames.COARSE_RANGE_SECONDS == config.COARSE_RANGE_SECONDS
    assert grafana_frames.period_values(fine)["recorded"] == config.FINE
    assert grafana_frames.period_values(coarse)["recorded"] == config.COARSE


@pytest.fixture(scope="module")
def snapshot_url(stack: Stack, period: Period) -> str:
    """The snapshot in Grafana; skips without Grafana."""
    if not is_installed("grafana"):
        pytest.skip("no `grafana` on the PATH")
    user = f"admin:{stack.admin().password}"
    address = stack.url("grafana").replace("://", f"://{user}@")
    grafana = Grafana(address, grafana_snapshot.TIMEOUT_SECONDS)
    key = make_snapshot(grafana, [RUN], "POST", period, "Which?").rpartition("/")[2]
    return f"{stack.url('grafana')}/dashboard/snapshot/{key}"


def test_grafana_keeps_the_data_of_a_snapshot(snapshot_url: str) -> None:
    address = snapshot_url.replace("dashboard/snapshot", "api/snapshots")
    answer = requests.get(address, timeout=30)
    assert answer.ok, answer.text
    panels = answer.json()["dashboard"]["panels"]

    shown = [panel for panel in panels if panel["type"] != "row"]
    without = {panel["title"] for panel in shown if RUN not in shown_names(panel)}
    assert without <= EMPTY


@pytest.mark.skipif(CHROMIUM is None, reason="no `chromium` on the PATH")
def test_snapshot_in_grafana_shows_the_arm_by_name(snapshot_url: str) -> None:
    with start_browser() as browser:
        page = new_page(browser)
        open_dashboard(page, snapshot_url)
        shown = read_panels(page)

    assert shown
    assert {panel.title for panel in shown if panel.failed} == set()
    assert {panel.title for panel in shown if RUN not in panel.text} <= EMPTY

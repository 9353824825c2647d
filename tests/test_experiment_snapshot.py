"""The snapshot of an experiment's dashboard: its data, and the snapshot in Grafana."""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import requests
from conftest import RUN
from rich.console import Console

from keylag.experiment import grafana_frames, grafana_snapshot
from keylag.experiment.grafana_api import Grafana
from keylag.experiment.grafana_frames import Period
from keylag.experiment.grafana_snapshot import (
    SnapshotError,
    Subject,
    fill_dashboard,
    make_snapshot,
)
from keylag.experiment.plan_parser import read_plan
from keylag.experiment.schedule import schedule_rounds
from keylag.experiment.stack_executor import StackExecutor
from keylag.experiment.stack_setup import PLANS_FOLDER
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
SUBJECT = Subject("Which?", [RUN], "POST", ["the other: slower than this"])
EMPTY = {"Refused and failed calls", SUBJECT.question}
"""Panels of a healthy run that may have no line of an arm."""


def ask_prometheus(stack: Stack, kind: str, parameters: dict[str, str]) -> Any:
    """Send a query to the stack's Prometheus, without Grafana in between."""
    url = f"{stack.url('prometheus')}/api/v1/{kind}"
    answer = requests.get(url, params=parameters, timeout=30)
    assert answer.ok, answer.text
    return answer.json()["data"]


@pytest.fixture(scope="module")
def two_arms(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of two arms that have sent the metrics of a round to the stack."""
    folder = tmp_path_factory.mktemp("arms")
    plan = read_plan(PLANS_FOLDER / "cache-backends.toml")
    plan = plan.with_arms(["memcache_pool", "none"])
    design = plan.design.model_copy(update={"turn_seconds": 15})
    plan = plan.model_copy(update={"design": design})
    quiet = Console(quiet=True)
    executor = StackExecutor(plan, folder / "arms", quiet, stack.url("otlp"))
    try:
        executor.start()
        first = next(schedule_rounds(plan.arm_names, seed=1))
        executor.begin_round(first)
        results = executor.run_round(first, folder)
    finally:
        executor.stop()
    assert not any(result.problems for result in results.values())
    return plan.arm_names


@pytest.fixture(scope="module")
def period(stack: Stack, called: list[Sample], two_arms: list[str]) -> Period:
    """The time of the loads, until the recording rules have seen them."""
    time.sleep(RECORDED_SECONDS)
    start = min(sample.start_seconds for sample in called)
    return Period(start - EARLIER_SECONDS, time.time())


def shown_names(panel: dict[str, Any]) -> set[str]:
    """Return the legends of a filled panel, and the cells of its tables."""
    if panel["type"] == "text":
        return set()
    (target,) = panel["targets"]
    names = set()
    for frame in target["snapshot"]:
        fields, columns = frame["schema"]["fields"], frame["data"]["values"]
        assert len(fields) == len(columns)
        assert len({len(column) for column in columns}) == 1
        names |= {one.get("config", {}).get("displayNameFromDS") for one in fields}
        names |= {value for column in columns for value in column}
    return names


def test_every_panel_of_a_snapshot_has_the_arm_by_name(
    stack: Stack, period: Period
) -> None:
    filled = fill_dashboard(SUBJECT, period, partial(ask_prometheus, stack))
    panels = [panel for panel in filled["panels"] if panel["type"] != "row"]
    lines = [panel for panel in panels if panel["type"] == "timeseries"]

    without = {panel["title"] for panel in panels if RUN not in shown_names(panel)}
    assert without <= EMPTY
    assert len(panels) - len(lines) == 3
    assert panels[0]["options"]["content"] == "- the other: slower than this"
    rows = [panel["gridPos"]["y"] for panel in filled["panels"]]
    assert rows == sorted(rows)
    assert len({panel["id"] for panel in filled["panels"]}) == len(rows)
    assert all(
        point is None or point >= 0
        for panel in lines
        for frame in panel["targets"][0]["snapshot"]
        for point in frame["data"]["values"][1]
    )
    assert not any("${" in str(panel.get("datasource")) for panel in panels)


def test_each_verdict_of_a_snapshot_has_a_line(stack: Stack, period: Period) -> None:
    ask = partial(ask_prometheus, stack)
    one = fill_dashboard(SUBJECT, period, ask)["panels"]
    subject = replace(SUBJECT, verdicts=[*SUBJECT.verdicts] * 4)
    four = fill_dashboard(subject, period, ask)["panels"]

    assert four[0]["gridPos"]["h"] - one[0]["gridPos"]["h"] == 3
    assert {
        lower["gridPos"]["y"] - panel["gridPos"]["y"]
        for panel, lower in zip(one[1:], four[1:], strict=True)
    } == {3}


def test_snapshot_has_the_arms_of_an_experiment_side_by_side(
    stack: Stack, period: Period, two_arms: list[str]
) -> None:
    subject = replace(SUBJECT, arms=two_arms, method="GET")
    filled = fill_dashboard(subject, period, partial(ask_prometheus, stack))
    shown = [panel for panel in filled["panels"] if panel["type"] != "row"]

    without = {
        panel["title"] for panel in shown if not {*two_arms} <= shown_names(panel)
    }
    assert without <= EMPTY
    assert not any(RUN in shown_names(panel) for panel in shown)


def test_arm_without_calls_in_prometheus_is_named(stack: Stack, period: Period) -> None:
    two = replace(SUBJECT, arms=[RUN, "elsewhere"])
    with pytest.raises(SnapshotError, match="has no calls of elsewhere in the time"):
        fill_dashboard(two, period, partial(ask_prometheus, stack))


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
    key = make_snapshot(grafana, SUBJECT, period).rpartition("/")[2]
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
    assert any(SUBJECT.verdicts[0] in panel.text for panel in shown)

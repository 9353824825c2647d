"""A tiny cloud in promtool and Prometheus: one controller, two workers, ten minutes."""

import dataclasses
import json
import math
import re
import shutil
import time
from collections import Counter

import pytest
import yaml

from keylag.paths import CHECKOUT
from keylag_cloud import exposition, prometheus
from keylag_cloud.fill import Filling, block_lines, identity, prepare
from keylag_cloud.grafana import Opening, boards, step_seconds
from keylag_cloud.model import Cloud, worker_rates
from keylag_cloud.rules import recording_rules
from keylag_dashboards import __main__ as generator
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.metrics import declared_series

WORKERS = 2
SCRAPE_SECONDS = 15
MINUTES = 10
pytestmark = [pytest.mark.stack, pytest.mark.slow]
CLOUD = Cloud(controllers=1, workers=WORKERS, service_workers=1)
RULES = generator.FOLDER / "rules" / "keylag.yml"
RATES = "keylag-rates"
"""The group whose rules have the window of the model."""
TOLERANCE = 1e-4
"""Counters are written with twelve digits, of which a minute changes the last ones."""
UNUSED = {"Keylag / Experiment"}
"""Dashboards whose panels have no data in a cloud without an experiment."""


@pytest.fixture(scope="module")
def document():
    return yaml.safe_load(RULES.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def plan(document, tmp_path_factory):
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            pytest.skip(f"not installed: {program}")
    end = int(time.time()) // prometheus.BLOCK_SECONDS * prometheus.BLOCK_SECONDS
    filling = Filling(CLOUD, end, 6, 6, SCRAPE_SECONDS)
    return prepare(filling, document, tmp_path_factory.mktemp("plan"))


@pytest.fixture(scope="module")
def minutes(plan):
    """The first minutes of the incident, and some before."""
    begin = plan.filling.load.incident[0]
    return range(begin - MINUTES * 30, begin + MINUTES * 30 + 1)


@pytest.fixture(scope="module")
def server(plan, minutes, tmp_path_factory):
    """A Prometheus in which every series has all samples."""
    folder = tmp_path_factory.mktemp("cloud")
    series = [*plan.filling.cloud.series(), *plan.recorded]
    whole = frozenset(identity(one.name, one.labels) for one in series)
    lines = block_lines(dataclasses.replace(plan, read=whole), minutes)
    prometheus.create_blocks(lines, folder / "new", folder / "data")
    with prometheus.running(folder / "data", folder / "prometheus.log") as running:
        yield running


def test_every_recorded_series_of_each_worker_exists(server, minutes) -> None:
    worker = exposition.count_by_metric(exposition.load("keystone"))
    query = 'count by (__name__) ({job="keystone", __name__!~"keylag:.+"})'
    found = server.get("query", {"query": query, "time": minutes[-1]})["result"]

    counts = {one["metric"]["__name__"]: int(one["value"][1]) for one in found}
    assert counts == {name: WORKERS * number for name, number in worker.items()}


def test_recorded_worker_has_declared_metrics_only() -> None:
    recorded = exposition.load("keystone") + exposition.load("service")

    assert {one.name for one in recorded} <= declared_series()


def test_filled_rates_equal_those_that_rules_compute(server, document, minutes) -> None:
    """At a time with normal load, with the incident, and at its beginning."""
    (group,) = [one for one in document["groups"] if one["name"] == RATES]
    compared = Counter()
    for moment in (minutes[-1], minutes[-1] - 270, minutes[-1] - 360):
        for rule in recording_rules({"groups": [group]}):
            computed = values(server, rule["expr"], moment, rule.get("labels", {}))
            matchers = ",".join(f'{k}="{v}"' for k, v in rule.get("labels", {}).items())
            filled = values(server, f"{rule['record']}{{{matchers}}}", moment, {})

            assert filled == pytest.approx(computed, rel=TOLERANCE), rule["record"]
            compared[moment] += len(filled)
    assert min(compared.values()) > 1000


def values(server, query, moment, labels) -> dict[frozenset[tuple[str, str]], float]:
    """Return the values of a query, by their labels without the name."""
    result = server.get("query", {"query": query, "time": moment})["result"]
    return {
        frozenset(({**one["metric"], **labels, "__name__": ""}).items()): float(
            one["value"][1]
        )
        for one in result
    }


@pytest.mark.parametrize("path", boards(), ids=lambda path: path.stem)
def test_every_query_of_the_dashboards_works(path, server, minutes) -> None:
    """Half of the panels have data, of those without a reason to have none."""
    opening = Opening.of(path, server, len(minutes), minutes[-1])
    (board,) = (one for one in BOARDS if one.title == opening.board["title"])
    may_be_empty = {title for title, _ in board.empty_reasons()}
    panels = list(opening.panels())
    expected = [one for one in panels if one.title not in may_be_empty]
    with_data = 0
    for panel in panels:
        for query in panel.queries:
            assert not re.search(r"\$[a-z_{]", query.text)
            data = json.loads(server.get_text(query.path, query.parameters))["data"]
            found = data["result"] if isinstance(data, dict) else data
            with_data += bool(found) and panel in expected

    assert panels
    assert opening.board["title"] in UNUSED or with_data > len(expected) / 2


def test_workers_share_the_load() -> None:
    shares = CLOUD.shares()

    assert math.isclose(sum(one.sum() for one in shares.values()), 1)
    assert len(set(shares["controller-1"])) == WORKERS


def test_calls_are_as_many_and_slower_in_the_incident() -> None:
    series = worker_rates(exposition.load("keystone"))
    last = [one for one in series if ("le", "+Inf") in one.labels]
    first = [one for one in series if ("le", "0.001") in one.labels]

    assert last
    assert all(one.incident == one.normal for one in last)
    assert all(one.incident == 0 for one in first)


@pytest.mark.parametrize(("seconds", "step"), [(3600, 15), (86400, 60), (604800, 300)])
def test_steps_are_those_of_grafana(seconds, step) -> None:
    assert step_seconds(seconds) == step


def test_the_token_route_alone_has_the_series_that_the_page_states() -> None:
    page = CHECKOUT / "docs" / "how-to" / "large-clouds.md"
    (stated,) = re.findall(
        r"^\| the token route only \| ([\d,]+) \|", page.read_text(), re.MULTILINE
    )

    worker = Cloud(controllers=1, workers=1, tokens_only=True)

    assert len(list(worker.keystone())) == int(stated.replace(",", ""))

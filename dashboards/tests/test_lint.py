"""The rules of Grafana's dashboard linter, and rules of our own.

Exceptions are documented at each test and in `.lint`.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from keylag_dashboards import render
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.metrics import declared_series
from keylag_dashboards.model import Board, Panel
from keylag_dashboards.promql import expand, metric_names
from keylag_dashboards.rules import recording_rules
from keylag_dashboards.variables import VARIABLES

each_board = pytest.mark.parametrize(
    "board", BOARDS, ids=[board.name for board in BOARDS]
)
UNITS = {"s", "short", "reqps", "ops", "percentunit", "bytes", "Bps"}
"""Grafana units that the dashboards use."""
SERIES = re.compile(r"(?P<metric>[\w:]+)\{(?P<matchers>[^}]*)\}")
RANGE = re.compile(r"(\w+)\([^()]*\{[^{}]*\}\[([^\]]+)\]")
DECLARED = declared_series() | {one.name for one in recording_rules()}


def panels(board: Board) -> list[Panel]:
    """Return all panels of a board."""
    return [panel for row in board.rows for panel in row.panels]


def queries(board: Board) -> dict[str, str]:
    """Return all queries of a board, expanded."""
    return {name: expand(query) for name, query in board.queries.items()}


def rendered(board: Board) -> Iterator[dict[str, Any]]:
    """Yield the JSON of a board's panels."""
    made = render.provisioned(board)["panels"]
    return (panel for panel in made if panel["type"] != "row")


@each_board
def test_every_metric_is_declared(board) -> None:
    """A panel on an undeclared metric never has data."""
    unknown = {
        name: metric_names(query) - DECLARED for name, query in queries(board).items()
    }

    assert {name: metrics for name, metrics in unknown.items() if metrics} == {}
    assert all(metric_names(query) for query in queries(board).values())


@each_board
def test_every_query_is_used(board) -> None:
    """The tables contain exactly the queries that panels and annotations use."""
    asked = {name for panel in panels(board) for name in panel.queries.values()}
    asked |= {annotation.query for annotation in board.annotations}

    assert asked == set(board.queries)


@each_board
def test_panels_have_title_description_and_unit(board) -> None:
    """Linter rules panel-title-description, panel-units and panel-no-targets."""
    for panel in rendered(board):
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["targets"]


@each_board
def test_titles_are_unique(board) -> None:
    titles = [panel.title for panel in panels(board)]

    assert len(titles) == len(set(titles))


@each_board
def test_no_data_text_names_the_sender(board) -> None:
    for panel in rendered(board):
        assert "`" in panel["fieldConfig"]["defaults"]["noValue"] or (
            "recording rules" in panel["fieldConfig"]["defaults"]["noValue"]
        )


@each_board
def test_empty_reason_is_part_of_the_description(board) -> None:
    for panel, made in zip(panels(board), rendered(board), strict=True):
        assert ("Empty when healthy: " in made["description"]) == bool(
            panel.empty_reason
        )
        assert set(panel.empty_legends) <= set(panel.queries)


@each_board
def test_rates_use_the_rate_interval(board) -> None:
    """Linter rule target-rate-interval: the window follows zoom and scrape interval."""
    for query in queries(board).values():
        bare = re.sub(r'"[^"]*"', "", query)
        found = RANGE.findall(bare)
        assert len(found) == bare.count("["), query
        for function, window in found:
            wanted = "$__rate_interval" if function == "rate" else "$__r"
            assert window.startswith(wanted), query


@each_board
def test_counters_are_queried_as_rates(board) -> None:
    """Linter rule target-counter-agg."""
    for query in queries(board).values():
        for found in SERIES.finditer(query):
            if found["metric"].endswith("_total"):
                before, after = query[: found.start()], query[found.end() :]
                assert before.rstrip().endswith(("rate(", "increase("))
                assert after.startswith("[")


@each_board
def test_series_are_selected_by_variables(board) -> None:
    """Linter rules target-job and target-instance, with exceptions.

    Metrics of Keystone are selected by $job and $instance, those of services by
    $service and $worker. Exporters are another job, so a variable selects their
    address. Recorded series have no instance.
    """
    keystones = ('job=~"$job"', 'instance=~"$instance"')
    services = ('job=~"$service"', 'instance=~"$worker"')
    for query in queries(board).values():
        for metric, matchers in SERIES.findall(query):
            wanted = {
                "keylag": ('instance=~"$exporter"',),
                "memcached": ('instance=~"$memcached"',),
                "keylag:token": ('job=~"$job"',),
            }.get(
                metric.partition("_")[0],
                services if metric.startswith("keystone_auth_token_") else keystones,
            )
            assert all(matcher in matchers for matcher in wanted), query


@each_board
def test_variables_follow_the_linter(board) -> None:
    """Linter rules template-datasource, -job, -instance, -on-time-change-reload.

    $run is an exception: only experiments have its label, so All is `.*`.
    """
    source, *variables = render.provisioned(board)["templating"]["list"]

    assert (source["name"], source["type"], source["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    assert [one["name"] for one in variables][:2] == ["job", "instance"]
    for one in variables:
        assert one["multi"]
        assert one["includeAll"]
        assert one["allValue"] == (".*" if one["name"] == "run" else ".+")
        assert one["refresh"] == 2


@each_board
def test_variables_match_their_uses(board) -> None:
    text = " ".join(queries(board).values())
    asked = " ".join(VARIABLES[name].query for name in board.variables)
    used = set(re.findall(r"\$(\w+)", text + asked)) - {
        "1",
        "__rate_interval",
        "__range",
    }

    assert used == set(board.variables)


@each_board
def test_dashboards_are_read_only(board) -> None:
    """Linter rule uneditable-dashboard: edit the tables or a copy."""
    made = render.provisioned(board)

    assert not made["editable"]
    assert made["graphTooltip"] == 1
    assert made["schemaVersion"] == 36


@each_board
def test_panels_fill_their_rows(board) -> None:
    """Every line of panels is 24 columns wide."""
    for row in board.rows:
        width = 0
        for panel in row.panels:
            width = width % 24 + panel.width
            assert width <= 24, panel.title
        assert width == 24, row.title

"""The rules of Grafana's dashboard linter, and rules of our own.

Exceptions are documented at each test and in `.lint`.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from keylag_dashboards import render
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.causes import METRICS
from keylag_dashboards.metrics import declared_series
from keylag_dashboards.model import Board, Panel
from keylag_dashboards.panels import MIN_COLUMN, height
from keylag_dashboards.promql import metric_names
from keylag_dashboards.queries.tokens import BUDGET_DAYS
from keylag_dashboards.recorded import COUNTERS, panel_query, recorded_rates
from keylag_dashboards.rules import recording_rules
from keylag_dashboards.variables import VARIABLES, state_variable

each_board = pytest.mark.parametrize(
    "board", BOARDS, ids=[board.name for board in BOARDS]
)
UNITS = {"s", "short", "reqps", "ops", "eps", "percentunit", "bytes", "Bps"}
WINDOWS = {
    *("$__rate_interval", "$__interval", "$__range", "$__range:$__interval"),
    *("5m", BUDGET_DAYS),
}
"""Grafana units that the dashboards use."""
EXPORTERS = {
    "keylag": "exporter",
    "memcached": "memcached",
    "mysql": "database",
    **dict.fromkeys(("node", "container", "namedprocess"), "machine"),
}
"""Variables that select an exporter's instance, by the first word of its metrics."""
SERIES = re.compile(r"(?P<metric>[\w:]+)\{(?P<matchers>[^}]*)\}")
RANGE = re.compile(r"(\w+)\([^()]*\{[^{}]*\}\[([^\]]+)\]")
RULES = (*recorded_rates(), *recording_rules())
DECLARED = declared_series() | {one.name for one in RULES} | {"ALERTS"}


def panels(board: Board) -> list[Panel]:
    """Return all panels of a board with queries."""
    return [panel for panel in board.panels() if panel.queries]


def queries(board: Board) -> dict[str, str]:
    """Return all queries of a board, as panels send them."""
    return {name: panel_query(query) for name, query in board.queries.items()}


def rendered(board: Board) -> Iterator[dict[str, Any]]:
    """Yield the JSON of a board's panels with queries."""
    made = render.all_panels(render.provisioned(board))
    return (panel for panel in made if panel["type"] != "text")


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
        text = panel["fieldConfig"]["defaults"]["noValue"]
        assert panel["type"] == "stat" or "keylag" in text or "dashboards/" in text


@each_board
def test_no_data_text_says_the_usual_reason(board) -> None:
    for panel, made in zip(panels(board), rendered(board), strict=True):
        text = made["fieldConfig"]["defaults"]["noValue"]
        if panel.empty_reason and not (panel.empty_legends or board.no_data):
            assert panel.empty_reason in text


@each_board
def test_empty_reason_is_part_of_the_description(board) -> None:
    for panel, made in zip(panels(board), rendered(board), strict=True):
        assert ("Empty when healthy: " in made["description"]) == bool(
            panel.empty_reason
        )
        assert set(panel.empty_legends) <= set(panel.queries)


@each_board
def test_ranges_follow_the_zoom(board) -> None:
    """Linter rule target-rate-interval; recorded series follow the panel's step.

    Comparisons with another day, and the budget, have windows of their own.
    """
    for query in queries(board).values():
        found = re.findall(r"\[([^\]]+)\]", re.sub(r'"[^"]*"', "", query))
        assert set(found) <= WINDOWS, query
        for _, function, window in re.findall(r"(\b(rate)\([^()]*)\[([^\]]+)\]", query):
            assert (function, window) == ("rate", "$__rate_interval"), query


@each_board
def test_no_panel_reads_counters_of_all_workers(board) -> None:
    """Recorded series carry them; an annotation of *Experiment* is the exception."""
    shown = {name for panel in panels(board) for name in panel.queries.values()}
    for name, query in queries(board).items():
        assert name not in shown or not metric_names(query) & set(COUNTERS), query


def test_rates_of_other_calls_are_not_recorded() -> None:
    with pytest.raises(ValueError, match="only token calls are recorded"):
        panel_query("rate(http_server_request_duration_seconds_sum{KEYSTONE}[RATE])")


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

    All series are selected by $cluster and $region. Metrics of Keystone are selected by
    $job, too, those of services by $service. Exporters are another job, so a variable
    selects their address. Recorded series have no instance. A diagnosis is one of a
    whole cluster.
    """
    for query in queries(board).values():
        for metric, matchers in SERIES.findall(query):
            if metric == "ALERTS":
                continue
            wanted = ['cluster=~"$cluster"', 'region=~"$region"']
            if metric in METRICS.values():
                assert all(matcher in matchers for matcher in wanted), query
                continue
            exporter = EXPORTERS.get(metric.partition("_")[0])
            if exporter and board.name != "home":
                wanted.append(f'instance=~"${exporter}')
            elif not exporter and board.name != "home":
                service = "keystone_auth_token_" in metric
                wanted.append(f'job=~"${"service" if service else "job"}"')
            assert all(matcher in matchers for matcher in wanted), query


@each_board
def test_variables_follow_the_linter(board) -> None:
    """Linter rules template-datasource, -job and -on-time-change-reload.

    All is `.*` for labels that not every Prometheus has, and where summed series exist.
    """
    source, *variables = render.provisioned(board)["templating"]["list"]
    chosen = [one for one in variables if one.get("hide") != 2]

    assert (source["name"], source["type"], source["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    names = [one["name"] for one in variables]
    assert len(names) == len(set(names))
    assert names[:4] == [
        "cluster",
        "region",
        "job",
        "host",
    ]
    for one in chosen:
        assert one["multi"]
        assert one["includeAll"]
        labels = {"cluster", "region", "host", "instance", "exporter"}
        assert one["allValue"] == (".*" if one["name"] in labels else ".+")
    for one in variables:
        assert one["refresh"] == 2


@each_board
def test_variables_match_their_uses(board) -> None:
    text = " ".join([*queries(board).values(), *(row.title for row in board.rows)])
    asked = " ".join(VARIABLES[name].query for name in board.variables)
    used = set(re.findall(r"\$(\w+)", text + asked)) - {
        "1",
        "2",
        "__rate_interval",
        "__interval",
        "__range",
    }

    assert used - states(board) == set(board.variables)


def test_galera_shows_all_methods() -> None:
    """The usual choice of $method leaves out DELETE, whose commits wait."""
    (galera,) = (board for board in BOARDS if board.name == "galera")

    assert not [one for one in queries(galera).values() if "$method" in one]


def states(board: Board) -> set[str]:
    """Return the hidden variables with the states of exporters."""
    return {state_variable(row.source) for row in board.rows if row.source}


@each_board
def test_dashboards_are_read_only(board) -> None:
    """Linter rule uneditable-dashboard: edit the tables or a copy."""
    made = render.provisioned(board)

    assert not made["editable"]
    assert made["graphTooltip"] == 1
    assert made["schemaVersion"] == 36


@each_board
def test_panels_fill_their_rows(board) -> None:
    """Every line of panels is 24 columns wide, and its panels are equally high."""
    for row in board.rows:
        width, heights = 0, set()
        for panel in row.panels:
            width = width % 24 + panel.width
            heights = (
                heights | {height(panel)} if width > panel.width else {height(panel)}
            )
            assert width <= 24, panel.title
            assert len(heights) == 1, panel.title
        assert width == 24, row.title


PAGE = 930
"""Width of the panels on a page of 1280 pixels with Grafana's menu beside it."""
CHARACTER, ICON, PADDING = 8, 30, 20
"""Widths in pixels, at most, of what is in a panel's or a column's heading."""


@each_board
def test_titles_fit_on_small_pages(board) -> None:
    for panel in board.panels():
        icons = ICON * (2 if panel.explained_by else 1)
        needed = len(panel.title) * CHARACTER + icons + PADDING
        assert needed <= panel.width * PAGE / 24, panel.title


@each_board
def test_columns_fit_on_small_pages(board) -> None:
    """Columns beyond the edge are found by nobody; headings are not cut."""
    for panel in (panel for panel in panels(board) if panel.kind == "table"):
        rest = panel.width * PAGE / 24 - PADDING
        rest -= sum(column.width for column in panel.columns.values())
        free = [name for name, column in panel.columns.items() if not column.width]
        assert rest >= MIN_COLUMN * len(free), panel.title
        for heading, column in panel.columns.items():
            assert not column.width or len(heading) * 7.5 + 12 <= column.width, heading


@each_board
def test_symptoms_link_to_explanations(board) -> None:
    """Every panel of *Token calls* says where to look next."""
    if board.name == "tokens":
        assert [one.title for one in panels(board) if not one.explained_by] == []


@each_board
def test_tables_list_all_columns(board) -> None:
    """Labels without a heading would appear anywhere, with their raw names."""
    for panel in panels(board):
        if panel.kind == "table":
            assert set(panel.queries) <= set(panel.columns), panel.title
            assert len(panel.columns) > len(panel.queries), panel.title

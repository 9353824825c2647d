"""Boards as Grafana's JSON, by Grafana's own SDK."""

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from keylag_dashboards import config, panels
from keylag_dashboards.model import Annotation, Board, Panel, Row
from keylag_dashboards.promql import expand, metric_names
from keylag_dashboards.variables import VARIABLES, Variable

SOURCE: Final = models.DataSourceRef("prometheus", config.DATASOURCE)
GRAFANA: Final = models.DataSourceRef("grafana", "-- Grafana --")
"""What Grafana keeps itself."""
EVERYTHING: Final = models.VariableOption(text="All", value="$__all")
MARKS: Final = 1000
"""How many marks of Grafana's own are shown at most."""


def provisioned(board: Board) -> dict[str, Any]:
    """Return a dashboard for Grafana's file provisioning."""
    made = dashboard.Dashboard(board.title).uid(config.UID_PREFIX + board.name)
    made = made.description(board.purpose).tags([config.TAG]).readonly()
    made = made.time(*config.TIME_RANGE).refresh(config.REFRESH)
    made = made.tooltip(models.DashboardCursorSync.CROSSHAIR).link(_link_to_all())
    made = made.with_variable(_data_source())
    for name in board.variables:
        made = made.with_variable(_variable(name, VARIABLES[name]))
    marks = [_annotation(mark, board.queries) for mark in board.annotations]
    told = [_marked(board.marked)] if board.marked else []
    made = made.annotations(marks + told)
    numbers = count(1)
    for row in board.rows:
        made = made.with_row(_row(row, next(numbers)))
        for panel in row.panels:
            made = made.with_panel(_panel(panel, board.queries, next(numbers)))
    plain: dict[str, Any] = json.loads(json.dumps(made.build(), cls=JSONEncoder))
    return plain


def for_import(board: Board) -> dict[str, Any]:
    """Return a dashboard for Grafana's Import page, which asks for the data source."""
    made = provisioned(board)
    chosen = f"${{{config.IMPORT_INPUT}}}"
    variables = made["templating"]["list"]
    variables[0]["current"] = {"text": chosen, "value": chosen}
    kinds = sorted({panel["type"] for panel in made["panels"]} - {"row"})
    return {"__inputs": [_input()], "__requires": list(_requires(kinds)), **made}


def _input() -> dict[str, str]:
    return {
        "name": config.IMPORT_INPUT,
        "label": "Prometheus",
        "description": "Where keylag-otel's and keylag-exporter's metrics are",
        "type": "datasource",
        "pluginId": "prometheus",
        "pluginName": "Prometheus",
    }


def _requires(kinds: list[str]) -> Iterator[dict[str, str]]:
    grafana = {"type": "grafana", "id": "grafana", "name": "Grafana"}
    yield {**grafana, "version": config.OLDEST_GRAFANA}
    source = {"type": "datasource", "id": "prometheus", "name": "Prometheus"}
    yield {**source, "version": "1.0.0"}
    for kind in kinds:
        yield {"type": "panel", "id": kind, "name": kind, "version": ""}


def _link_to_all() -> Builder[models.DashboardLink]:
    """Return the links to all of our dashboards, which keep time and variables."""
    link = dashboard.DashboardLink("Keylag").type(models.DashboardLinkType.DASHBOARDS)
    return (
        link.tags([config.TAG])
        .keep_time(keep_time=True)
        .include_vars(include_vars=True)
    )


def _data_source() -> Builder[models.VariableModel]:
    made = dashboard.DatasourceVariable("datasource").label("Data source")
    return made.type("prometheus").current(
        models.VariableOption(text="default", value="default")
    )


def _variable(name: str, one: Variable) -> Builder[models.VariableModel]:
    first = models.VariableOption(text=list(one.first), value=list(one.first))
    made = dashboard.QueryVariable(name).label(one.label).description(one.description)
    made = made.datasource(SOURCE).query(one.query).multi(multi=True)
    made = made.include_all(include_all=True).all_value(one.every)
    made = made.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
    made = made.sort(models.VariableSort.ALPHABETICAL_ASC)
    return made.current(first if one.first else EVERYTHING)


def _annotation(
    mark: Annotation, queries: Mapping[str, str]
) -> Builder[models.AnnotationQuery]:
    made = dashboard.AnnotationQuery().name(mark.name).datasource(SOURCE)
    made = made.enable(enable=True).icon_color(mark.color)
    return made.expr(expand(queries[mark.query]))


def _marked(tags: tuple[str, ...]) -> Builder[models.AnnotationQuery]:
    """Return the marks that have all of these tags, whoever made them."""
    target = dashboard.AnnotationTarget().type("tags").tags(list(tags))
    target = target.match_any(match_any=False).limit(MARKS)
    made = dashboard.AnnotationQuery().name("Told to Grafana").datasource(GRAFANA)
    return made.enable(enable=True).icon_color("purple").target(target)


def _row(row: Row, number: int) -> Builder[models.RowPanel]:
    made = dashboard.Row(row.title).id(number)
    return made.repeat(row.repeat) if row.repeat else made


def _panel(panel: Panel, queries: Mapping[str, str], number: int) -> Any:
    """Return the builder of a panel: what its kind makes, and what all have."""
    chosen = {name: expand(queries[query]) for name, query in panel.queries.items()}
    made = panels.KINDS[panel.kind](panel).id(number).datasource(SOURCE)
    made = made.title(panel.title).description(described(panel))
    made = made.span(panel.width).height(panels.HEIGHT)
    made = made.no_value(without_data(chosen)).links(
        [_link_to(name) for name in panel.leads_to]
    )
    target = panels.TARGETS.get(panel.kind, panels.over_time)
    for letter, (legend, query) in zip(panels.LETTERS, chosen.items(), strict=False):
        made = made.with_target(target(query, legend).ref_id(letter))
    return made


def described(panel: Panel) -> str:
    """Return what to look for, and why there may be nothing to see."""
    return (
        f"{panel.look} Empty when healthy: {panel.empty}."
        if panel.empty
        else panel.look
    )


def without_data(queries: Mapping[str, str]) -> str:
    """Return what a panel says where its queries find nothing."""
    senders = {
        next(
            sender for start, sender in config.SOURCES.items() if name.startswith(start)
        )
        for query in queries.values()
        for name in metric_names(query)
    }
    return f"No data. It comes from {' and '.join(sorted(senders))}."


def _link_to(name: str) -> Builder[models.DashboardLink]:
    url = f"/d/{config.UID_PREFIX}{name}?${{__url_time_range}}&${{__all_variables}}"
    return dashboard.DashboardLink(f"Open {name}").url(url)

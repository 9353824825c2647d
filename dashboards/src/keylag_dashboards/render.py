"""Renders dashboards to JSON with Grafana's SDK."""

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
"""Grafana's own data source."""
ALL_VALUES: Final = models.VariableOption(text="All", value="$__all")
MAX_ANNOTATIONS: Final = 1000
"""Maximum of annotations from Grafana's own data source."""


def provisioned(board: Board) -> dict[str, Any]:
    """Return a dashboard for Grafana's file provisioning, as JSON types."""
    builder = dashboard.Dashboard(board.title).uid(config.UID_PREFIX + board.name)
    builder = builder.description(board.purpose).tags([config.TAG]).readonly()
    builder = builder.time(*config.TIME_RANGE).refresh(config.REFRESH)
    builder = builder.tooltip(models.DashboardCursorSync.CROSSHAIR).link(_link_to_all())
    builder = builder.with_variable(_data_source())
    for name in board.variables:
        builder = builder.with_variable(_variable(name, VARIABLES[name]))
    annotations = [
        _annotation(annotation, board.queries) for annotation in board.annotations
    ]
    from_grafana = (
        [_grafana_annotation(board.grafana_tags)] if board.grafana_tags else []
    )
    builder = builder.annotations(annotations + from_grafana)
    numbers = count(1)
    for row in board.rows:
        builder = builder.with_row(_row(row, next(numbers)))
        for panel in row.panels:
            builder = builder.with_panel(_panel(panel, board.queries, next(numbers)))
    plain: dict[str, Any] = json.loads(json.dumps(builder.build(), cls=JSONEncoder))
    return plain


def for_import(board: Board) -> dict[str, Any]:
    """Return a dashboard for the Import page, which asks for the data source."""
    content = provisioned(board)
    data_source = f"${{{config.IMPORT_INPUT}}}"
    variables = content["templating"]["list"]
    variables[0]["current"] = {"text": data_source, "value": data_source}
    kinds = sorted({panel["type"] for panel in content["panels"]} - {"row"})
    return {"__inputs": [_input()], "__requires": list(_requires(kinds)), **content}


def _input() -> dict[str, str]:
    return {
        "name": config.IMPORT_INPUT,
        "label": "Prometheus",
        "description": "Prometheus with the metrics of keylag-otel and keylag-exporter",
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
    """Return a link list of all Keylag dashboards; it keeps time and variables."""
    link = dashboard.DashboardLink("Keylag").type(models.DashboardLinkType.DASHBOARDS)
    return (
        link.tags([config.TAG])
        .keep_time(keep_time=True)
        .include_vars(include_vars=True)
    )


def _data_source() -> Builder[models.VariableModel]:
    builder = dashboard.DatasourceVariable("datasource").label("Data source")
    return builder.type("prometheus").current(
        models.VariableOption(text="default", value="default")
    )


def _variable(name: str, one: Variable) -> Builder[models.VariableModel]:
    first = models.VariableOption(text=list(one.selected), value=list(one.selected))
    builder = (
        dashboard.QueryVariable(name).label(one.label).description(one.description)
    )
    builder = builder.datasource(SOURCE).query(one.query).multi(multi=True)
    builder = builder.include_all(include_all=True).all_value(one.all_value)
    builder = builder.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
    builder = builder.sort(models.VariableSort.ALPHABETICAL_ASC)
    return builder.current(first if one.selected else ALL_VALUES)


def _annotation(
    annotation: Annotation, queries: Mapping[str, str]
) -> Builder[models.AnnotationQuery]:
    builder = dashboard.AnnotationQuery().name(annotation.name).datasource(SOURCE)
    builder = builder.enable(enable=True).icon_color(annotation.color)
    return builder.expr(expand(queries[annotation.query]))


def _grafana_annotation(tags: tuple[str, ...]) -> Builder[models.AnnotationQuery]:
    """Return the annotations stored in Grafana that have all of these tags."""
    target = dashboard.AnnotationTarget().type("tags").tags(list(tags))
    target = target.match_any(match_any=False).limit(MAX_ANNOTATIONS)
    builder = dashboard.AnnotationQuery().name("Stored in Grafana").datasource(GRAFANA)
    return builder.enable(enable=True).icon_color("purple").target(target)


def _row(row: Row, number: int) -> Builder[models.RowPanel]:
    builder = dashboard.Row(row.title).id(number)
    return builder.repeat(row.repeat) if row.repeat else builder


def _panel(panel: Panel, queries: Mapping[str, str], number: int) -> Any:
    """Return the builder of a panel: its kind, and what all panels share."""
    chosen = {name: expand(queries[query]) for name, query in panel.queries.items()}
    builder = panels.PANEL_BUILDERS[panel.kind](panel).id(number).datasource(SOURCE)
    builder = builder.title(panel.title).description(panel_description(panel))
    builder = builder.span(panel.width).height(panels.HEIGHT)
    builder = builder.no_value(no_data_text(chosen)).links(
        [_link_to(name) for name in panel.drill_down]
    )
    target = panels.QUERY_BUILDERS.get(panel.kind, panels.range_query)
    for letter, (legend, query) in zip(panels.REF_IDS, chosen.items(), strict=False):
        builder = builder.with_target(target(query, legend).ref_id(letter))
    return builder


def panel_description(panel: Panel) -> str:
    """Return the hint, and why the panel may be empty."""
    return (
        f"{panel.hint} Empty when healthy: {panel.empty_reason}."
        if panel.empty_reason
        else panel.hint
    )


def no_data_text(queries: Mapping[str, str]) -> str:
    """Return what a panel shows without data: who sends its metrics."""
    senders = {
        next(
            sender
            for start, sender in config.METRIC_SENDERS.items()
            if name.startswith(start)
        )
        for query in queries.values()
        for name in metric_names(query)
    }
    return f"No data. It comes from {' and '.join(sorted(senders))}."


def _link_to(name: str) -> Builder[models.DashboardLink]:
    url = f"/d/{config.UID_PREFIX}{name}?${{__url_time_range}}&${{__all_variables}}"
    return dashboard.DashboardLink(f"Open {name}").url(url)

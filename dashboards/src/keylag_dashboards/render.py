"""Renders dashboards to JSON with Grafana's SDK."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from keylag_dashboards import config, panels
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.model import Annotation, Board, Panel, Row
from keylag_dashboards.promql import expand, metric_names
from keylag_dashboards.recorded import panel_query
from keylag_dashboards.variables import (
    RECORDED_SERIES,
    VARIABLES,
    Variable,
    state_variable,
)

SOURCE: Final = models.DataSourceRef("prometheus", config.DATASOURCE)
GRAFANA: Final = models.DataSourceRef("grafana", "-- Grafana --")
"""Grafana's own data source."""
ALL_VALUES: Final = models.VariableOption(text="All", value="$__all")
_BOARDS: Final = {board.name: board for board in BOARDS}
RECORDED: Final = config.PLACEHOLDERS["RECORDED"]
MAX_ANNOTATIONS: Final = 1000
"""Maximum of annotations from Grafana's own data source."""


def provisioned(board: Board) -> dict[str, Any]:
    """Return a dashboard for Grafana's file provisioning, as JSON types."""
    return _rendered(board, collapsed=lambda row: row.collapsed)


def for_import(board: Board) -> dict[str, Any]:
    """Return a dashboard for the Import page, which asks for the data source.

    Rows that need an exporter are collapsed, because nobody knows which ones there
    are. The first row is open, so that no dashboard opens empty.
    """
    first = board.rows[0]
    content = _rendered(board, lambda row: bool(row.source) and row is not first)
    data_source = f"${{{config.IMPORT_INPUT}}}"
    variables = content["templating"]["list"]
    variables[0]["current"] = {"text": data_source, "value": data_source}
    kinds = sorted({panel["type"] for panel in all_panels(content)})
    return {"__inputs": [_input()], "__requires": list(_requires(kinds)), **content}


def all_panels(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the panels of a rendered dashboard, those of collapsed rows as well."""
    for panel in content["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def panel_ids(board: Board) -> dict[str, int]:
    """Return the numeric id of each panel by title; rows have ids, too."""
    numbers = count(1)
    found: dict[str, int] = {}
    for row in board.rows:
        next(numbers)
        found |= {panel.title: next(numbers) for panel in row.panels}
    return found


def _rendered(board: Board, collapsed: Callable[[Row], bool]) -> dict[str, Any]:
    builder = dashboard.Dashboard(board.title).uid(config.UID_PREFIX + board.name)
    builder = builder.description(board.purpose).tags([config.TAG]).readonly()
    builder = builder.time(*config.TIME_RANGE).refresh(config.REFRESH)
    builder = builder.tooltip(models.DashboardCursorSync.CROSSHAIR).link(_link_to_all())
    builder = builder.with_variable(_data_source())
    for name in (*board.variables, RECORDED_SERIES, *_state_variables(board)):
        builder = builder.with_variable(_variable(name, VARIABLES[name]))
    annotations = [
        _annotation(annotation, board.queries) for annotation in board.annotations
    ]
    from_grafana = (
        [_grafana_annotation(board.grafana_tags)] if board.grafana_tags else []
    )
    builder = builder.annotations(annotations + from_grafana)
    ids = panel_ids(board)
    for row in board.rows:
        made = [_panel(panel, board, ids[panel.title]) for panel in row.panels]
        heading = _row(row, ids[row.panels[0].title] - 1)
        if collapsed(row):
            for panel in made:
                heading = heading.with_panel(panel)
            builder = builder.with_row(heading)
            continue
        builder = builder.with_row(heading)
        for panel in made:
            builder = builder.with_panel(panel)
    plain: dict[str, Any] = json.loads(json.dumps(builder.build(), cls=JSONEncoder))
    return plain


def _state_variables(board: Board) -> list[str]:
    """Return the hidden variables with the states of the sources of its rows."""
    sources = dict.fromkeys(row.source for row in board.rows if row.source)
    return [state_variable(source) for source in sources]


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
        .as_dropdown(as_dropdown=True)
        .keep_time(keep_time=True)
        .include_vars(include_vars=True)
    )


def _data_source() -> Builder[models.VariableModel]:
    builder = dashboard.DatasourceVariable("datasource").label("Data source")
    return builder.type("prometheus").current(
        models.VariableOption(text="default", value="default")
    )


def _variable(name: str, one: Variable) -> Builder[models.VariableModel]:
    builder = dashboard.QueryVariable(name).label(one.label)
    builder = builder.description(one.description).datasource(SOURCE).query(one.query)
    builder = builder.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
    builder = builder.sort(models.VariableSort.ALPHABETICAL_ASC)
    builder = builder.regex(one.regex)
    if one.hidden:
        return builder.hide(models.VariableHide.HIDE_VARIABLE)
    builder = builder.multi(multi=True).include_all(include_all=True)
    builder = builder.all_value(one.all_value)
    first = models.VariableOption(text=list(one.selected), value=list(one.selected))
    return builder.current(first if one.selected else ALL_VALUES)


def _annotation(
    annotation: Annotation, queries: Mapping[str, str]
) -> Builder[models.AnnotationQuery]:
    builder = dashboard.AnnotationQuery().name(annotation.name).datasource(SOURCE)
    builder = builder.enable(enable=annotation.shown).icon_color(annotation.color)
    return builder.expr(panel_query(queries[annotation.query]))


def _grafana_annotation(tags: tuple[str, ...]) -> Builder[models.AnnotationQuery]:
    """Return the annotations stored in Grafana that have all of these tags."""
    target = dashboard.AnnotationTarget().type("tags").tags(list(tags))
    target = target.match_any(match_any=False).limit(MAX_ANNOTATIONS)
    builder = dashboard.AnnotationQuery().name("Stored in Grafana").datasource(GRAFANA)
    return builder.enable(enable=True).icon_color("purple").target(target)


def _row(row: Row, number: int) -> dashboard.Row:
    title = f"{row.title}: ${state_variable(row.source)}" if row.source else row.title
    builder = dashboard.Row(title).id(number)
    return builder.repeat(row.repeat) if row.repeat else builder


def _panel(panel: Panel, board: Board, number: int) -> Any:
    """Return the builder of a panel: its kind, and what all panels share."""
    chosen = {
        name: panel_query(board.queries[query]) for name, query in panel.queries.items()
    }
    builder = panels.PANEL_BUILDERS[panel.kind](panel).id(number).title(panel.title)
    builder = builder.span(panel.width).height(panels.height(panel))
    builder = builder.description(panel_description(panel))
    if panel.kind == "text":
        return builder
    no_value = board.no_data or _no_value(panel, chosen)
    builder = builder.datasource(SOURCE).no_value(no_value)
    builder = builder.links([_link_to(place) for place in panel.explained_by])
    if panel.decimals is not None:
        builder = builder.decimals(panel.decimals)
    if any("keylag:" in query for query in chosen.values()):
        builder = builder.interval(config.MIN_STEP)
    if panel.points:
        builder = builder.max_data_points(panel.points)
    if panel.kind == "table":
        first = next(iter(chosen))
        chosen[first] = _with_empty_row(panel, chosen[first], no_value)
    target = panels.QUERY_BUILDERS.get(panel.kind, panels.range_query)
    for letter, (legend, query) in zip(panels.REF_IDS, chosen.items(), strict=False):
        asked = target(query, legend).ref_id(letter)
        if RECORDED in query:
            asked = asked.interval(f"{config.PLACEHOLDERS['EVERY']}s")
        builder = builder.with_target(asked)
    if panel.exemplars:
        builder = builder.with_target(_exemplars(panel))
    return builder


def _no_value(panel: Panel, queries: Mapping[str, str]) -> str:
    """Return the text without data; a stat has room for few words."""
    if panel.kind == "stat":
        return panel.empty_reason or "no data"
    reason = "" if panel.empty_legends else panel.empty_reason
    return no_data_text(queries, reason)


def _with_empty_row(panel: Panel, query: str, text: str) -> str:
    """Return the first query of a table, with a row of words if it has no other.

    Grafana shows the text without data in tables of one query only.
    """
    label = panels.widest_label(panel)
    row = f'label_replace(vector(0) / 0, "{label}", "{text}", "", "")'
    return f"{query} or on () {row}"


def _exemplars(panel: Panel) -> Any:
    """Return a query without results, whose series have exemplars.

    Recorded series have none.  `@ end()` reads one sample of each raw series.
    """
    query = f"{expand(panel.exemplars)} @ end() < 0"
    made = panels.range_query(query, "exemplars").exemplar(exemplar=True)
    return made.ref_id("Exemplars")


def panel_description(panel: Panel) -> str:
    """Return the hint, and why the panel may be empty."""
    return (
        f"{panel.hint} Empty when healthy: {panel.empty_reason}."
        if panel.empty_reason
        else panel.hint
    )


def no_data_text(queries: Mapping[str, str], reason: str = "") -> str:
    """Return what a panel shows without data: the usual reason, and who sends it."""
    senders = {
        next(
            sender
            for start, sender in config.METRIC_SENDERS.items()
            if name.startswith(start)
        )
        for query in queries.values()
        for name in metric_names(query)
    }
    # A sender is named once, with the recording rules if they are between.
    named = [
        one
        for one in sorted(senders)
        if not any(other.startswith(f"{one}, ") for other in senders)
    ]
    usual = f"Usual reason: {reason}. " if reason else ""
    return f"No data in this time. {usual}It comes from {' and '.join(named)}."


def _link_to(place: str) -> Builder[models.DashboardLink]:
    """Return a link to a panel, which keeps time and variables."""
    board, number = find_panel(place)
    kept = "${__url_time_range}&${__all_variables}"
    url = f"/d/{config.UID_PREFIX}{board.name}?viewPanel={number}&{kept}"
    title = place.partition(": ")[2]
    name = board.title.removeprefix("Keylag / ")
    return dashboard.DashboardLink(f"{name}: {title}").url(url)


def find_panel(place: str) -> tuple[Board, int]:
    """Return the dashboard and the id of a panel, given as `dashboard: title`.

    Raises ValueError if there is no such panel.
    """
    name, _, title = place.partition(": ")
    ids = panel_ids(_BOARDS[name]) if name in _BOARDS else {}
    if title not in ids:
        message = f"no panel {place!r}; {name} has: {', '.join(ids) or 'no panels'}"
        raise ValueError(message)
    return _BOARDS[name], ids[title]

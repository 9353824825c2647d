"""Builders for each kind of panel."""

from collections.abc import Callable, Iterator, Mapping
from string import ascii_uppercase
from typing import Any, Final

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    table,
    text,
    timeseries,
)
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.text import TextMode

from keylag_dashboards import palette
from keylag_dashboards.config import LABEL_HEADINGS
from keylag_dashboards.model import Column, Kind, Panel, State

PanelBuilder = Any
"""A builder of the SDK, whose classes have no common base."""

HEIGHTS: Final[Mapping[Kind, int]] = {"stat": 4, "table": 7, "text": 6}
HEIGHT: Final = 8
"""Height of kinds that are not in HEIGHTS."""
WIDE_COLUMNS: Final = 12
"""Width from which a panel has a table as its legend."""
REF_IDS: Final = ascii_uppercase
HIDDEN: Final = ("Time", "__name__")
MIN_COLUMN: Final = 60
"""Width of a column that takes what is left, in pixels; Grafana's default is 150."""
EMPTY_CELL: Final = "-"
SOFT_MAXIMUM: Final[Mapping[str, float]] = {
    "s": 0.001,
    "percentunit": 0.01,
    "bytes": 1024,
    "Bps": 1024,
}
"""End of an axis without higher values, by unit; else 1."""


def height(panel: Panel) -> int:
    """Return the height of a panel, in Grafana's units."""
    return panel.height or HEIGHTS.get(panel.kind, HEIGHT)


def range_query(query: str, legend: str) -> prometheus.Dataquery:
    """Return a query over the time shown."""
    return prometheus.Dataquery().expr(query).legend_format(legend).range()


def _heatmap_query(query: str, legend: str) -> prometheus.Dataquery:
    return range_query(query, legend).format(PromQueryFormat.HEATMAP)


def _instant_query(query: str, legend: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(query).legend_format(legend).instant()


def _table_query(query: str, legend: str) -> prometheus.Dataquery:
    return _instant_query(query, legend).format(PromQueryFormat.TABLE)


QUERY_BUILDERS: Final[Mapping[Kind, Callable[[str, str], prometheus.Dataquery]]] = {
    "heatmap": _heatmap_query,
    "table": _table_query,
    "stat": _instant_query,
}
"""Query builders of kinds that do not use `range_query`."""


def _legend(panel: Panel) -> common.VizLegendOptions:
    """Return a table legend with mean and maximum, or a list if narrow.

    A panel with one line needs none: its title says what it is.
    """
    several = len(panel.queries) > 1 or any("{{" in legend for legend in panel.queries)
    builder = common.VizLegendOptions().show_legend(show_legend=several)
    if panel.width < WIDE_COLUMNS:
        builder = builder.placement(common_models.LegendPlacement.BOTTOM)
        return builder.display_mode(common_models.LegendDisplayMode.LIST)
    builder = builder.placement(common_models.LegendPlacement.RIGHT)
    builder = builder.display_mode(common_models.LegendDisplayMode.TABLE)
    return builder.calcs(["mean", "max"])


def _property(name: str, value: object) -> models.DynamicConfigValue:
    return models.DynamicConfigValue(name, value)


def _fixed(color: str) -> models.DynamicConfigValue:
    return _property("color", {"mode": "fixed", "fixedColor": color})


LIMIT: Final = (
    _fixed("text"),
    _property("custom.lineStyle", {"fill": "dash", "dash": [8, 8]}),
    _property("custom.fillOpacity", 0),
)
"""A limit is a dashed line."""


def _thresholds(panel: Panel) -> dashboard.ThresholdsConfig:
    """Return the thresholds; without any all values have the colour of text."""
    above = sorted(panel.thresholds.items())
    steps = [
        models.Threshold(value, color) for value, color in [(None, "text"), *above]
    ]
    return (
        dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)
    )


def _lines(panel: Panel) -> PanelBuilder:
    tooltip = common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI)
    tooltip = tooltip.sort(common_models.SortOrder.DESCENDING)
    builder = timeseries.Panel().unit(panel.unit).min(0).tooltip(tooltip)
    builder = builder.legend(_legend(panel)).fill_opacity(0).line_width(2)
    builder = builder.show_points(common_models.VisibilityMode.AUTO).point_size(4)
    builder = builder.thresholds(_thresholds(panel))
    if panel.thresholds:
        drawn = common_models.GraphTresholdsStyleMode.DASHED
        builder = builder.thresholds_style(
            common.GraphThresholdsStyleConfig().mode(drawn)
        )
    if panel.maximum is None:
        builder = builder.axis_soft_max(SOFT_MAXIMUM.get(panel.unit, 1))
    else:
        builder = builder.max(panel.maximum)
    for name, color in palette.colors(panel.queries).items():
        builder = builder.override_by_name(name, [_fixed(color)])
    for name in panel.limits:
        builder = builder.override_by_name(name, list(LIMIT))
    return builder


def _stacked(panel: Panel) -> PanelBuilder:
    stacking = common.StackingConfig().mode(common_models.StackingMode.NORMAL)
    builder = _lines(panel).stacking(stacking).fill_opacity(70).line_width(0)
    return builder.show_points(common_models.VisibilityMode.NEVER)


def _heatmap(panel: Panel) -> PanelBuilder:
    color = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME)
    color = color.scheme("Oranges").steps(64)
    axis = heatmap.YAxisConfig().unit(panel.unit)
    builder = heatmap.Panel().calculate(calculate=False).color(color).y_axis(axis)
    builder = builder.cell_values(heatmap.CellValues().unit("reqps"))
    return builder.unit(panel.unit).cell_gap(1).show_legend().show_tooltip()


def _stat(panel: Panel) -> PanelBuilder:
    reduce = common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False)
    mode = common_models.BigValueTextMode
    builder = stat.Panel().unit(panel.unit).reduce_options(reduce)
    builder = builder.graph_mode(common_models.BigValueGraphMode.NONE)
    builder = builder.thresholds(_thresholds(panel)).color_scheme(_by_threshold())
    builder = builder.text_mode(mode.VALUE_AND_NAME if panel.show_name else mode.AUTO)
    if panel.states:
        builder = builder.color_mode(common_models.BigValueColorMode.BACKGROUND_SOLID)
    return builder.mappings([_words(panel.states)])


def _by_threshold() -> dashboard.FieldColor:
    return dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS)


def _words(states: Mapping[float, State]) -> models.ValueMap:
    """Return the words for values; a value that is not a number is a dash."""
    options = {
        f"{value:g}": models.ValueMappingResult(text=one.word, color=one.color)
        for value, one in states.items()
    }
    options["NaN"] = models.ValueMappingResult(text=EMPTY_CELL)
    return models.ValueMap(options=options)


def _table(panel: Panel) -> PanelBuilder:
    """Return a table: a row per set of labels, a column per query.

    Rows are sorted by the first query, largest first, if there is no other order.
    """
    builder = table.Panel().unit(panel.unit).show_header(show_header=True)
    builder = builder.thresholds(_thresholds(panel)).mappings([_words({})])
    heading = panel.sorted_by or next(iter(panel.queries))
    first = common.TableSortByFieldState().display_name(heading)
    builder = builder.sort_by([first.desc(desc=not panel.sorted_by)])
    merged = models.DataTransformerConfig("merge", options={})
    named = _renamed(panel)
    order = [*(name for name in panel.columns if name not in panel.queries)]
    order += [*panel.queries]
    tidied = {
        "excludeByName": dict.fromkeys(HIDDEN, True),
        "renameByName": named,
        "indexByName": {
            name: order.index(heading)
            for name, heading in named.items()
            if heading in order
        },
    }
    tidy = models.DataTransformerConfig("organize", options=tidied)
    builder = builder.with_transformation(merged).with_transformation(tidy)
    # A status or an id is no number to format.
    builder = builder.override_by_field_type("string", [_property("unit", "string")])
    for heading, column in _columns(panel).items():
        builder = builder.override_by_name(heading, list(_column(column)))
    return builder


def widest_label(panel: Panel) -> str:
    """Return the label in a table's column that takes the width that is left."""
    heading = next(
        heading
        for heading, column in panel.columns.items()
        if heading not in panel.queries and not column.width
    )
    return next(name for name, shown in _renamed(panel).items() if shown == heading)


def _renamed(panel: Panel) -> dict[str, str]:
    """Return Grafana's names of labels and values, and the headings."""
    labels = {heading: name for name, heading in LABEL_HEADINGS.items()}
    named = {
        labels.get(heading, heading): heading
        for heading in panel.columns
        if heading not in panel.queries
    }
    for letter, heading in zip(REF_IDS, panel.queries, strict=False):
        named[f"Value #{letter}"] = heading
    if len(panel.queries) == 1:
        named["Value"] = next(iter(panel.queries))
    return named


def _columns(panel: Panel) -> dict[str, Column]:
    return {**dict.fromkeys(panel.queries, Column()), **panel.columns}


def _column(column: Column) -> Iterator[models.DynamicConfigValue]:
    # An empty cell needs no text about the sender of the metrics.
    yield _property("noValue", EMPTY_CELL)
    if column.unit:
        yield _property("unit", column.unit)
    if column.width:
        yield _property("custom.width", column.width)
    else:
        yield _property("custom.minWidth", MIN_COLUMN)
    if column.decimals is not None:
        yield _property("decimals", column.decimals)
    if column.states:
        yield _property("mappings", [_words(column.states)])
        yield _property("custom.cellOptions", {"type": "color-text"})
    elif not column.width:
        # Statements, and why there is no data, are longer than what is left of a row.
        yield _property("custom.cellOptions", {"type": "auto", "wrapText": True})
    if column.link:
        yield _property("links", [{"title": "Open", "url": column.link}])


def _text(panel: Panel) -> PanelBuilder:
    return text.Panel().mode(TextMode.MARKDOWN).content(panel.text)


PANEL_BUILDERS: Final[Mapping[Kind, Callable[[Panel], PanelBuilder]]] = {
    "lines": _lines,
    "stacked": _stacked,
    "heatmap": _heatmap,
    "stat": _stat,
    "table": _table,
    "text": _text,
}

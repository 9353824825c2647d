"""Builders for each kind of panel."""

from collections.abc import Callable, Iterator, Mapping
from string import ascii_uppercase
from typing import Any, Final

from grafana_foundation_sdk.builders import (
    common,
    heatmap,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from keylag_dashboards.categories import TITLES
from keylag_dashboards.config import COLORS, LABEL_HEADINGS
from keylag_dashboards.model import Kind, Panel

PanelBuilder = Any
"""A builder of the SDK, whose classes have no common base."""

HEIGHT: Final = 8
WIDE_COLUMNS: Final = 12
"""Width from which a panel has a table as its legend."""
REF_IDS: Final = ascii_uppercase
HIDDEN: Final = ("Time", "__name__")


def range_query(query: str, legend: str) -> prometheus.Dataquery:
    """Return a query over the time shown; its exemplars link to traces."""
    builder = prometheus.Dataquery().expr(query).legend_format(legend).range()
    return builder.exemplar(exemplar="_bucket" in query)


def _heatmap_query(query: str, legend: str) -> prometheus.Dataquery:
    return range_query(query, legend).format(PromQueryFormat.HEATMAP)


def _table_query(query: str, legend: str) -> prometheus.Dataquery:
    builder = prometheus.Dataquery().expr(query).legend_format(legend).instant()
    return builder.format(PromQueryFormat.TABLE)


QUERY_BUILDERS: Final[Mapping[Kind, Callable[[str, str], prometheus.Dataquery]]] = {
    "heatmap": _heatmap_query,
    "table": _table_query,
    "stat": lambda query, legend: range_query(query, legend).exemplar(exemplar=False),
}
"""Query builders of kinds that do not use `range_query`."""


def _legend(panel: Panel) -> common.VizLegendOptions:
    """Return a table legend with mean and maximum, or a list if narrow."""
    builder = common.VizLegendOptions().show_legend(show_legend=True)
    if panel.width < WIDE_COLUMNS:
        builder = builder.placement(common_models.LegendPlacement.BOTTOM)
        return builder.display_mode(common_models.LegendDisplayMode.LIST)
    builder = builder.placement(common_models.LegendPlacement.RIGHT)
    builder = builder.display_mode(common_models.LegendDisplayMode.TABLE)
    return builder.calcs(["mean", "max"])


def _lines(panel: Panel) -> PanelBuilder:
    legend = _legend(panel)
    tooltip = common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI)
    builder = timeseries.Panel().unit(panel.unit).min(0).legend(legend).tooltip(tooltip)
    builder = builder.fill_opacity(10).show_points(common_models.VisibilityMode.NEVER)
    return _color_categories(builder)


def _stacked(panel: Panel) -> PanelBuilder:
    stacking = common.StackingConfig().mode(common_models.StackingMode.NORMAL)
    return _lines(panel).stacking(stacking).fill_opacity(60).line_width(0)


def _share(panel: Panel) -> PanelBuilder:
    stacking = common.StackingConfig().mode(common_models.StackingMode.PERCENT)
    return _stacked(panel).stacking(stacking)


def _color_categories(builder: PanelBuilder) -> PanelBuilder:
    """Set the colour of each category, so that all panels agree."""
    for category, color in COLORS.items():
        fixed = models.DynamicConfigValue(
            "color", {"mode": "fixed", "fixedColor": color}
        )
        builder = builder.override_by_name(TITLES[category], [fixed])
    return builder


def _heatmap(panel: Panel) -> PanelBuilder:
    color = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME)
    color = color.scheme("Oranges").steps(64)
    axis = heatmap.YAxisConfig().unit(panel.unit)
    builder = heatmap.Panel().calculate(calculate=False).color(color).y_axis(axis)
    return builder.unit(panel.unit).cell_gap(1).show_legend().show_tooltip()


def _stat(panel: Panel) -> PanelBuilder:
    reduce = common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False)
    return stat.Panel().unit(panel.unit).reduce_options(reduce)


def _table(panel: Panel) -> PanelBuilder:
    """Return a table: a row per set of labels, a column per query.

    Rows are sorted by the first query, largest first.
    """
    builder = table.Panel().unit(panel.unit).show_header(show_header=True)
    first = common.TableSortByFieldState().display_name(next(iter(panel.queries)))
    builder = builder.sort_by([first.desc(desc=True)])
    merged = models.DataTransformerConfig("merge", options={})
    tidied = {
        "excludeByName": dict.fromkeys(HIDDEN, True),
        "renameByName": LABEL_HEADINGS,
    }
    tidy = models.DataTransformerConfig("organize", options=tidied)
    builder = builder.with_transformation(merged).with_transformation(tidy)
    for heading, value in _columns(panel):
        builder = builder.override_by_name(value, list(_column(panel, heading)))
    return builder


def _columns(panel: Panel) -> Iterator[tuple[str, str]]:
    """Yield the headings and Grafana's names of the columns."""
    if len(panel.queries) == 1:
        yield next(iter(panel.queries)), "Value"
        return
    for letter, heading in zip(REF_IDS, panel.queries, strict=False):
        yield heading, f"Value #{letter}"


def _column(panel: Panel, heading: str) -> Iterator[models.DynamicConfigValue]:
    yield models.DynamicConfigValue("displayName", heading)
    # An empty cell needs no text about the sender of the metrics.
    yield models.DynamicConfigValue("noValue", "-")
    if panel.units and heading in panel.units:
        yield models.DynamicConfigValue("unit", panel.units[heading])


PANEL_BUILDERS: Final[Mapping[Kind, Callable[[Panel], PanelBuilder]]] = {
    "lines": _lines,
    "stacked": _stacked,
    "share": _share,
    "heatmap": _heatmap,
    "stat": _stat,
    "table": _table,
}

"""The dashboards use only what Grafana 10.1, 11, 12 and 13 have in common.

The names below are in @grafana/schema and @grafana/data 10.1.0, 11.6.16, 12.2.0,
12.4.10 and 13.2.3.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from keylag_dashboards.check import GENERATED

SCHEMA_VERSION = 36
"""That of 10.1; later releases migrate it."""
VARIABLES = {
    *("query", "datasource", "custom", "constant", "interval", "textbox", "adhoc"),
}
TRANSFORMATIONS = {
    *("calculateField", "concatenate", "convertFieldType", "extractFields"),
    *("filterByRefId", "filterByValue", "filterFields", "filterFieldsByName"),
    *("formatTime", "groupBy", "groupingToMatrix", "histogram", "joinByField"),
    *("joinByLabels", "labelsToFields", "limit", "merge", "organize"),
    *("partitionByValues", "prepareTimeSeries", "reduce", "renameByRegex"),
    *("rowsToFields", "seriesToRows", "sortBy", "timeSeriesTable"),
}
MATCHERS = {"byName", "byNames", "byRegexp", "byType", "byFrameRefID", "byValue"}
UNITS = {
    *(
        "none",
        "short",
        "locale",
        "string",
        "percent",
        "percentunit",
        "bool",
        "bool_yes_no",
    ),
    *("ns", "ms", "s", "m", "h", "d", "dtdurations", "dateTimeAsIso"),
    *("dateTimeFromNow", "ops", "eps", "reqps", "rps", "wps", "cps", "hertz"),
    *("bytes", "decbytes", "Bps"),
}
FIELD = {
    *("color", "custom", "decimals", "description", "displayName", "filterable"),
    *("links", "mappings", "max", "min", "noValue", "thresholds", "unit"),
}
LEGEND = {"legend", "tooltip"}
SINGLE = {"orientation", "reduceOptions", "text"}
TABLE = {"cellHeight", "frameIndex", "showHeader", "showTypeIcons", "sortBy"}
OPTIONS = {
    "row": set[str](),
    "timeseries": LEGEND | {"timezone"},
    # `footer` was an option of the panel until 12.1; later releases migrate it.
    "table": TABLE | {"footer"},
    "stat": SINGLE | {"colorMode", "graphMode", "justifyMode", "textMode"},
    "gauge": SINGLE | {"showThresholdLabels", "showThresholdMarkers"},
    "bargauge": SINGLE
    | {"displayMode", "minVizHeight", "minVizWidth", "showUnfilled", "valueMode"},
    "heatmap": LEGEND
    | {"calculate", "calculation", "cellGap", "cellRadius", "cellValues", "color"}
    | {"exemplars", "filterValues", "rowsFrame", "showValue", "yAxis"},
    "text": {"code", "content", "mode"},
    "state-timeline": LEGEND | {"alignValue", "mergeValues", "rowHeight", "showValue"},
}
"""The panels, each with its options."""
AXIS = {
    *("axisCenteredZero", "axisColorMode", "axisGridShow", "axisLabel"),
    *("axisPlacement", "axisSoftMax", "axisSoftMin", "axisWidth"),
    *("hideFrom", "scaleDistribution"),
}
CUSTOM = {
    "timeseries": AXIS
    | {"barAlignment", "barMaxWidth", "barWidthFactor", "drawStyle", "fillBelowTo"}
    | {"fillColor", "fillOpacity", "gradientMode", "lineColor", "lineInterpolation"}
    | {"lineStyle", "lineWidth", "pointColor", "pointSize", "pointSymbol"}
    | {"showPoints", "spanNulls", "stacking", "thresholdsStyle", "transform"},
    # Without `hidden`, which 12.2 replaced by `hideFrom`.
    "table": {"align", "cellOptions", "filterable", "inspect", "minWidth", "width"},
    "heatmap": {"hideFrom", "scaleDistribution"},
    "state-timeline": {"fillOpacity", "hideFrom", "lineWidth"},
}
"""The panels' own properties of fields."""

FILES = sorted(GENERATED.glob("*.json"))
each_file = pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])


def all_panels(panels: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield panels, and those in collapsed rows."""
    for panel in panels:
        yield panel
        yield from all_panels(panel.get("panels", []))


def uses(dashboard: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield what a dashboard uses: the kind, the name, whether all releases have it."""
    yield "schema", str(found := dashboard["schemaVersion"]), found == SCHEMA_VERSION
    for variable in dashboard["templating"]["list"]:
        yield "variable", variable["type"], variable["type"] in VARIABLES
    for panel in all_panels(dashboard["panels"]):
        kind = panel["type"]
        yield "panel", kind, kind in OPTIONS
        for name in panel.get("options", {}):
            yield f"option of {kind}", name, name in OPTIONS[kind]
        for one in panel.get("transformations", []):
            yield "transformation", one["id"], one["id"] in TRANSFORMATIONS
        own = {f"custom.{name}" for name in CUSTOM.get(kind, ())}
        fields = panel.get("fieldConfig", {"defaults": {}, "overrides": []})
        properties = [*fields["defaults"].items()]
        properties += [
            (f"custom.{name}", value)
            for name, value in fields["defaults"].get("custom", {}).items()
        ]
        for override in fields["overrides"]:
            matcher = override["matcher"]["id"]
            yield "matcher", matcher, matcher in MATCHERS
            properties += [(one["id"], one["value"]) for one in override["properties"]]
        for name, value in properties:
            own = CUSTOM.get(kind, set())
            known = (
                name.removeprefix("custom.") in own if "." in name else name in FIELD
            )
            yield f"property of {kind}", name, known
            if name == "unit":
                yield "unit", value, value in UNITS


@each_file
def test_all_releases_have_what_the_dashboards_use(file) -> None:
    dashboard = json.loads(file.read_text(encoding="utf-8"))

    assert {(kind, name) for kind, name, known in uses(dashboard) if not known} == set()


@each_file
def test_data_sources_are_named_by_uid(file) -> None:
    """Grafana 13 disables the API that takes the numbers of data sources."""
    dashboard = json.loads(file.read_text(encoding="utf-8"))
    sources = [panel.get("datasource") for panel in all_panels(dashboard["panels"])]
    sources += [one["datasource"] for one in dashboard["annotations"]["list"]]

    assert [found for found in sources if found and set(found) != {"type", "uid"}] == []

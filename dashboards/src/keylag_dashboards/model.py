"""The model of dashboards and alerts.

`render` converts a dashboard to Grafana's JSON, `rules` an alert to Prometheus' YAML,
and `grafana_alerts` that to Grafana's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["lines", "stacked", "heatmap", "stat", "table", "text"]
Severity = Literal["page", "ticket"]
"""`page` notifies immediately, `ticket` can wait for the next working day."""


@dataclass(frozen=True)
class Column:
    """How a table shows a column: unit, width in pixels, decimals.

    Columns without a width share what is left.
    """

    unit: str = ""
    width: int = 0
    decimals: int | None = None
    states: Mapping[float, "State"] = field(default_factory=dict)
    link: str = ""
    """URL of each cell; `${__data.fields.NAME}` is the row's value of a label."""


@dataclass(frozen=True)
class State:
    """A word for a value, and its colour."""

    word: str
    color: str


@dataclass(frozen=True)
class Panel:
    """One panel: a title, a hint for the reader, a Grafana unit, and queries."""

    title: str
    hint: str
    unit: str
    kind: Kind
    queries: Mapping[str, str]
    """Legend or column heading to query name."""
    width: int = 12
    """In columns; a page has 24."""
    height: int = 0
    """In Grafana's units; 0 is the usual height of the kind."""
    decimals: int | None = None
    maximum: float | None = None
    """End of the axis."""
    points: int = 0
    """Most values of a line, if its queries read many series; 0 is one per pixel."""
    thresholds: Mapping[float, str] = field(default_factory=dict)
    """Colours from a value on; drawn as lines, or as the colour of a stat."""
    limits: tuple[str, ...] = ()
    """Legends of series that are limits: dashed grey lines."""
    columns: Mapping[str, Column] = field(default_factory=dict)
    """Columns of a table by heading, labels and queries alike, in their order."""
    sorted_by: str = ""
    """Heading that sorts a table upwards; else its first query does, downwards."""
    states: Mapping[float, State] = field(default_factory=dict)
    """Words of a stat instead of values."""
    show_name: bool = False
    """Whether a stat shows the legend beside the value."""
    text: str = ""
    """Markdown of a text panel."""
    empty_reason: str = ""
    """Why the panel has no data on a healthy stack, if so; part of its description."""
    empty_legends: tuple[str, ...] = ()
    """Legends that `empty_reason` applies to; all if empty."""
    explained_by: tuple[str, ...] = ()
    """Panels that explain what this one shows, as `dashboard: title`."""
    exemplars: str = ""
    """Raw series whose exemplars are shown as points, with links to traces."""

    def may_be_empty(self, legend: str) -> bool:
        """Return whether a query may have no data on a healthy stack."""
        return bool(self.empty_reason) and legend in (
            self.empty_legends or self.queries
        )


@dataclass(frozen=True)
class Row:
    """Panels below a heading, repeated for each value of `repeat` if it is set."""

    title: str
    panels: tuple[Panel, ...]
    repeat: str = ""
    source: str = ""
    """Name of the exporter's source that all panels need, if so."""
    collapsed: bool = False


@dataclass(frozen=True)
class Annotation:
    """Annotations on the time axis: a name, a query and a colour."""

    name: str
    query: str
    color: str
    shown: bool = False
    """Whether it is shown until somebody switches it off."""


@dataclass(frozen=True)
class Board:
    """One dashboard; uid and file name come from its name."""

    name: str
    title: str
    purpose: str
    queries: Mapping[str, str]
    """By name, with the placeholders of `promql`."""
    variables: tuple[str, ...]
    """Names of `variables.VARIABLES`."""
    rows: tuple[Row, ...]
    annotations: tuple[Annotation, ...] = ()
    grafana_tags: tuple[str, ...] = ()
    """Tags of annotations stored in Grafana that are shown, too."""
    no_data: str = ""
    """Text of panels without data, if it is not who sends their metrics."""

    def panels(self) -> tuple[Panel, ...]:
        """Return the panels of all rows."""
        return tuple(panel for row in self.rows for panel in row.panels)

    def empty_reasons(self) -> dict[tuple[str, str], str]:
        """Return why queries may have no data, by panel title and legend."""
        return {
            (panel.title, legend): panel.empty_reason
            for panel in self.panels()
            for legend in filter(panel.may_be_empty, panel.queries)
        }


@dataclass(frozen=True)
class Alert:
    """One alert: query, waiting time (`for` in Prometheus), and texts."""

    name: str
    severity: Severity
    pending: str
    query: str
    summary: str
    description: str
    panel: str
    """The panel that shows it, as `dashboard: title`."""
    causes: tuple[str, ...] = ()
    """Ids of the causes that it may have; none if it tells of missing metrics."""

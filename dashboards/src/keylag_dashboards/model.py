"""What dashboards and alerts consist of.

`render` turns a dashboard into Grafana's JSON, `rules` an alert into Prometheus' YAML.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["lines", "stacked", "share", "heatmap", "stat", "table"]
Severity = Literal["page", "ticket"]
"""Whether somebody is woken, or it can wait for the morning."""


@dataclass(frozen=True)
class Panel:
    """One panel: a title, what to look for, a unit of Grafana's, and queries."""

    title: str
    look: str
    unit: str
    kind: Kind
    queries: Mapping[str, str]
    """Legend, or heading of a table's column, to the name of the query."""
    width: int = 12
    """Of the 24 columns of a page."""
    units: Mapping[str, str] | None = None
    """Units of single columns of a table, by heading."""
    empty: str = ""
    """Why it has no data on a healthy stack, if that is so; shown to the reader."""
    empty_only: tuple[str, ...] = ()
    """The legends that this is about; all, if none is named."""
    leads_to: tuple[str, ...] = ()
    """Names of the dashboards that take a question further."""

    def may_be_empty(self, legend: str) -> bool:
        """Tell whether a query of this panel may have no data on a healthy stack."""
        return bool(self.empty) and legend in (self.empty_only or self.queries)


@dataclass(frozen=True)
class Row:
    """Panels with a heading, repeated for each value of a variable if one is given."""

    title: str
    panels: tuple[Panel, ...]
    repeat: str = ""


@dataclass(frozen=True)
class Annotation:
    """Marks on the time axis: a name, a query and a colour."""

    name: str
    query: str
    color: str


@dataclass(frozen=True)
class Board:
    """One dashboard: its name makes the uid and the file's name."""

    name: str
    title: str
    purpose: str
    queries: Mapping[str, str]
    """By name, with words in capitals: see `promql`."""
    variables: tuple[str, ...]
    """Names in `variables.VARIABLES`."""
    rows: tuple[Row, ...]
    annotations: tuple[Annotation, ...] = ()
    marked: tuple[str, ...] = ()
    """The tags of marks that Grafana itself keeps and that are shown, too."""

    def excuses(self) -> dict[tuple[str, str], str]:
        """Return why queries may have no data on a healthy stack.

        By the panel's title and the query's legend.
        """
        return {
            (panel.title, legend): panel.empty
            for row in self.rows
            for panel in row.panels
            for legend in filter(panel.may_be_empty, panel.queries)
        }


@dataclass(frozen=True)
class Alert:
    """One alert: what fires it, for how long, and what it tells."""

    name: str
    severity: Severity
    wait: str
    query: str
    summary: str
    description: str

"""The model of dashboards and alerts.

`render` converts a dashboard to Grafana's JSON, `rules` an alert to Prometheus' YAML.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["lines", "stacked", "share", "heatmap", "stat", "table"]
Severity = Literal["page", "ticket"]
"""`page` notifies immediately, `ticket` can wait for the next working day."""


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
    units: Mapping[str, str] | None = None
    """Units of table columns, by heading."""
    empty_reason: str = ""
    """Why the panel has no data on a healthy stack, if so; part of its description."""
    empty_legends: tuple[str, ...] = ()
    """Legends that `empty_reason` applies to; all if empty."""
    drill_down: tuple[str, ...] = ()
    """Names of dashboards with more detail."""

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


@dataclass(frozen=True)
class Annotation:
    """Annotations on the time axis: a name, a query and a colour."""

    name: str
    query: str
    color: str


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

    def empty_reasons(self) -> dict[tuple[str, str], str]:
        """Return why queries may have no data, by panel title and legend."""
        return {
            (panel.title, legend): panel.empty_reason
            for row in self.rows
            for panel in row.panels
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

"""A diagnosis as one self-contained HTML page, with charts of the evidence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.diagnosis import wording
from keylag.diagnosis.common import name_kind
from keylag.diagnosis.document import dashboard_url, missing_sources
from keylag.diagnosis.promql import evidence_query
from keylag.diagnosis.ranking import Diagnosis, Finding
from keylag.diagnosis.rule import Evidence
from keylag.diagnosis.trends import Trends
from keylag.report.jinja import jinja_environment
from keylag.report.line_chart import LineChart, line_chart
from keylag.state import write_output

MEASURED: Final = "measured"
EXPECTED: Final = "expected"


@dataclass(frozen=True)
class Report:
    """A diagnosis on a page, with what is shown beside it."""

    name: str
    """The name of a run; empty for a window of Prometheus."""
    diagnosis: Diagnosis
    trends: Trends | None = None
    no_charts: str = ""
    """Why there are no trends."""

    def charts(self, finding: Finding) -> Iterator["EvidenceChart"]:
        """Yield the evidence of a finding, each with its chart."""
        for one in finding.suspicion.evidence:
            query = evidence_query(one, self.diagnosis.facts)
            yield EvidenceChart(one, query, self._chart(finding, one))

    def _chart(self, finding: Finding, one: Evidence) -> LineChart | None:
        if self.trends is None:
            return None
        facts = self.diagnosis.facts
        lines = self.trends.lines(finding.rule, one, facts)
        ends = facts.window.start, facts.window.end
        usual = [] if one.baseline is None else [(at, one.baseline) for at in ends]
        measured = [(MEASURED, points) for points in lines]
        return line_chart([(EXPECTED, usual), *measured], ends)


@dataclass(frozen=True)
class EvidenceChart:
    """One number of the evidence: its query, and how it went over the window."""

    evidence: Evidence
    query: str
    chart: LineChart | None


def write_html(reports: Sequence[Report], path: Path, grafana: str = "") -> None:
    """Write the page; creates the folder.  Raises OSError."""
    write_output(path, render_html(reports, grafana))


def render_html(reports: Sequence[Report], grafana: str = "") -> str:
    """Return the HTML of the page; `grafana` is where links to dashboards begin."""
    return (
        jinja_environment()
        .get_template("diagnosis.html.j2")
        .render(
            reports=reports,
            healthy=all(one.diagnosis.is_healthy for one in reports),
            grafana=grafana,
            wording=wording,
            name_kind=name_kind,
            dashboard_url=dashboard_url,
            missing_sources=missing_sources,
            panel=_panel,
        )
    )


def _panel(finding: Finding) -> Mapping[str, str]:
    board, _, title = finding.rule.panel.partition(": ")
    return {"board": board, "title": title}

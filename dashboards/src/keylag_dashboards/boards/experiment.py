"""Dashboard *Experiment*: the arms side by side while they run."""

from typing import Final

from keylag_dashboards.categories import breakdown_columns, breakdown_table
from keylag_dashboards.model import Annotation, Board, Column, Panel, Row, State
from keylag_dashboards.queries.experiment import QUERIES

_RUN: Final = "{{keylag_run}}"


def _by_arm(title: str, hint: str, unit: str, query: str, width: int = 8) -> Panel:
    """Return a panel with a line per arm."""
    return Panel(title, hint, unit, "lines", {_RUN: query}, width)


WHOLE: Final = Row(
    "Over the time shown",
    (
        Panel(
            "Arms",
            "The category that differs shows the effect of the change. Means are no"
            " verdict: the experiment's report has it.",
            "s",
            "table",
            breakdown_table("arm"),
            width=24,
            height=8,
            columns=breakdown_columns("arm"),
            explained_by=("tokens: Time per call, by category",),
        ),
        Panel(
            "Configuration of the arms",
            "The arms should differ only in what the experiment changes.",
            "short",
            "table",
            {"seen": "configuration"},
            width=14,
            height=8,
            columns={
                "arm": Column(),
                "cache": Column(width=190),
                "token": Column(width=65),
                "password hash": Column(width=115),
                "seen": Column(width=75, states={1: State("yes", "text")}),
            },
        ),
        Panel(
            "Refused and failed calls",
            "More failures make a comparison of latencies invalid.",
            "reqps",
            "lines",
            {f"{_RUN} {{{{http_response_status_code}}}}": "failed"},
            width=10,
        ),
    ),
)

COURSE: Final = Row(
    "Over time",
    (
        _by_arm(
            "Calls per second",
            "Compare latencies only between arms with equal rates.",
            "reqps",
            "rate",
            width=12,
        ),
        _by_arm(
            "Mean time of a call",
            "Both arms rise together: the machine is the cause, not the change.",
            "s",
            "mean",
            width=12,
        ),
        _by_arm("Latency, p50", "The median call of each arm.", "s", "p50"),
        _by_arm(
            "Latency, p95",
            "Of each arm, 5 % of the calls are slower.",
            "s",
            "p95",
        ),
        _by_arm(
            "Latency, p99",
            "Few calls determine it, so it is noisy in short rounds.",
            "s",
            "p99",
        ),
        _by_arm(
            "SQL statements per call",
            "An exact count, independent of machine load: any difference is real.",
            "short",
            "statements",
        ),
        _by_arm(
            "Cache calls per call",
            "An exact count, independent of machine load.",
            "short",
            "cache_calls",
        ),
        _by_arm(
            "Hits of memoized functions",
            "A rising ratio is warm-up: exclude it from the comparison.",
            "percentunit",
            "hit_ratio",
        ),
    ),
)

BOARD: Final = Board(
    name="experiment",
    title="Keylag / Experiment",
    purpose="The arms of an experiment, or the runs of a demo, side by side.",
    queries=QUERIES,
    variables=("cluster", "region", "job", "host", "method", "run"),
    rows=(WHOLE, COURSE),
    annotations=(Annotation("Arm under load", "under_load", "blue", shown=True),),
    grafana_tags=("keylag", "experiment"),
    no_data="No experiment ran in this time. keylag experiment run starts one.",
)

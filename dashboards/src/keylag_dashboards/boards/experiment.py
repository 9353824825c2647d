"""Dashboard *Experiment*: the arms side by side while they run."""

from typing import Final

from keylag_dashboards.categories import breakdown_columns
from keylag_dashboards.model import Annotation, Board, Panel, Row
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
            "The category that differs shows what the change did. The means are no"
            " proof: the verdict is in the experiment's own report.",
            "s",
            "table",
            breakdown_columns("arm"),
            width=24,
            units={"calls": "short"},
        ),
        Panel(
            "What the arms ran with",
            "The arms must differ in what the experiment changes, and in nothing else.",
            "short",
            "table",
            {"seen": "configuration"},
        ),
        Panel(
            "Refused and failed calls",
            "An arm that fails more is not faster.",
            "reqps",
            "lines",
            {f"{_RUN} {{{{http_response_status_code}}}}": "failed"},
            empty_reason="no call was refused",
        ),
    ),
)

COURSE: Final = Row(
    "Over time",
    (
        _by_arm(
            "Calls per second",
            "Arms with different rates cannot be compared by latency alone.",
            "reqps",
            "rate",
            width=12,
        ),
        _by_arm(
            "Mean time of a call",
            "Look for drift: both arms rising together is the machine.",
            "s",
            "mean",
            width=12,
        ),
        _by_arm("Latency, p50", "The usual call of each arm.", "s", "p50"),
        _by_arm("Latency, p95", "The slow calls of each arm.", "s", "p95"),
        _by_arm(
            "Latency, p99",
            "Few calls decide it: short rounds make it jump.",
            "s",
            "p99",
        ),
        _by_arm(
            "SQL statements per call",
            "Exact, whatever the machine does: a difference here is real.",
            "short",
            "statements",
        ),
        _by_arm("Cache calls per call", "Exact as well.", "short", "cache_calls"),
        _by_arm(
            "Hits of memoized functions",
            "An arm that begins cold climbs: leave its warm-up out.",
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
    variables=("job", "instance", "method", "run"),
    rows=(WHOLE, COURSE),
    annotations=(Annotation("Arm under load", "under_load", "blue"),),
    grafana_tags=("keylag", "experiment"),
)

"""Experiment: the arms side by side while they run."""

from typing import Final

from keylag_dashboards.blocks import TITLES
from keylag_dashboards.model import Annotation, Board, Panel, Row
from keylag_dashboards.queries.experiment import QUERIES

_RUN: Final = "{{keylag_run}}"

WHOLE: Final = Row(
    "Over the time shown",
    (
        Panel(
            "Arms",
            "The block that differs is what the change did. Differences of means are no"
            " proof: the verdict is in the experiment's own report.",
            "s",
            "table",
            {
                "calls": "calls",
                "wall": "wall",
                **{title: f"block_{block}" for block, title in TITLES.items()},
            },
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
            empty="no call was refused",
        ),
    ),
)

COURSE: Final = Row(
    "Over time",
    (
        Panel(
            "Calls per second",
            "Arms with different rates cannot be compared by latency alone.",
            "reqps",
            "lines",
            {_RUN: "rate"},
        ),
        Panel(
            "Mean time of a call",
            "Look for drift: both arms rising together is the machine.",
            "s",
            "lines",
            {_RUN: "mean"},
        ),
        Panel(
            "Latency, p50",
            "The usual call of each arm.",
            "s",
            "lines",
            {_RUN: "p50"},
            8,
        ),
        Panel(
            "Latency, p95",
            "The slow calls of each arm.",
            "s",
            "lines",
            {_RUN: "p95"},
            8,
        ),
        Panel(
            "Latency, p99",
            "Few calls decide it: short blocks make it jump.",
            "s",
            "lines",
            {_RUN: "p99"},
            8,
        ),
        Panel(
            "SQL statements per call",
            "Exact, whatever the machine does: a difference here is real.",
            "short",
            "lines",
            {_RUN: "statements"},
            8,
        ),
        Panel(
            "Cache calls per call",
            "Exact as well.",
            "short",
            "lines",
            {_RUN: "cache_calls"},
            8,
        ),
        Panel(
            "Hits of memoized functions",
            "An arm that begins cold climbs: leave its warm-up out.",
            "percentunit",
            "lines",
            {_RUN: "hit_ratio"},
            8,
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
)

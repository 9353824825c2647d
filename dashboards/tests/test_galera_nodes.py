"""What *Galera* says of nodes that serve or not, asked of promtool."""

import re
from pathlib import Path

import pytest
from promtool_query import check

from keylag_dashboards.promql import expand
from keylag_dashboards.queries.galera import QUERIES

LABELS = '{{cluster="a", region="r", instance="{}"}}'
STATUS = "mysql_global_status_wsrep_"
RUNS = {"mysql_up": "1x8", f"{STATUS}local_state": "4x8"}
NODES = {
    "a1": {**RUNS, f"{STATUS}cluster_status": "1x8"},
    "a2": {**RUNS, f"{STATUS}cluster_status": "0x8"},
    # It ended after a minute, so its exporter has no status of it.
    "a3": {
        "mysql_up": "1x3 0x4",
        f"{STATUS}local_state": "4x3 stale",
        f"{STATUS}cluster_status": "1x3 stale",
    },
    "no-cluster": {"mysql_up": "0x8"},
}
SHOWN = {
    "serves": {'{node="a1"}': 1, '{node="a2"}': 0, '{node="a3"}': -1},
    "serving": {"{}": 1},
    "state": {'{node="a1"}': 4, '{node="a2"}': 4},
}


@pytest.mark.parametrize("query", SHOWN)
def test_a_node_that_ended_is_down(query: str, tmp_path: Path) -> None:
    series = {
        name + LABELS.format(node): values
        for node, found in NODES.items()
        for name, values in found.items()
    }
    asked = re.sub(r"\$[a-z]\w+", ".*", expand(QUERIES[query]))

    check(asked, series, SHOWN[query], tmp_path, eval_time="2m")

"""What *Likely cause* shows, asked of promtool."""

from pathlib import Path

import pytest
from promtool_query import check

from keylag_dashboards import grafana_alerts
from keylag_dashboards.causes import METRICS
from keylag_dashboards.promql import expand
from keylag_dashboards.queries.tokens import LIKELY_CAUSES

COST = METRICS["cost"]
SUCCESS = METRICS["success"]
CHEAP = '{id="W2", name="cpu-starved", dashboard="workers"}'
DEAR = '{id="C2", name="cache-server-hung", dashboard="cache"}'
NONE = '{id="H1", name="hash-cost", dashboard="workers"}'
CASES = {
    "causes that cost": (
        {SUCCESS: 1, COST + CHEAP: 0.3, COST + DEAR: 0.8, COST + NONE: 0},
        {DEAR: 0.8, CHEAP: 0.3},
    ),
    "a healthy Keystone": (
        {SUCCESS: 1, COST + NONE: 0},
        {'{name="no cause found"}': 0},
    ),
    "a Keystone without calls": (
        {SUCCESS: 1},
        {'{name="unknown: no token calls in five minutes"}': 0},
    ),
    "nobody who diagnoses": ({"up": 1}, {}),
}


ALERTS = {'up{cluster="a", job="k"}': 1, 'up{cluster="b", job="k"}': 2}
OF_ALERTS = {
    "one in each cluster, the most expensive": (
        {
            COST + '{cluster="a", id="W2", name="cpu-starved", instance="1"}': 0.3,
            COST + '{cluster="a", id="C2", name="cache-server-hung"}': 0.8,
            COST + '{cluster="b", id="C4", name="cache-far"}': 0.1,
        },
        {
            '{cluster="a", job="k", id="C2", name="cache-server-hung"}': 0.8,
            '{cluster="b", job="k", id="C4", name="cache-far"}': 0.1,
        },
    ),
    "one in one cluster": (
        {COST + '{cluster="a", id="C2", name="cache-server-hung"}': 0.8},
        {
            '{cluster="a", job="k", id="C2", name="cache-server-hung"}': 0.8,
            '{cluster="b", job="k"}': 2,
        },
    ),
    "none that costs": (
        {COST + '{cluster="a", id="C2", name="cache-server-hung"}': 0},
        {'{cluster="a", job="k"}': 1, '{cluster="b", job="k"}': 2},
    ),
    "nobody who diagnoses": (
        {},
        {'{cluster="a", job="k"}': 1, '{cluster="b", job="k"}': 2},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_likely_cause(case: str, tmp_path: Path) -> None:
    series, shown = CASES[case]
    query = expand(LIKELY_CAUSES).replace("$cluster", ".*").replace("$region", ".*")
    check(query, series, shown, tmp_path)


@pytest.mark.parametrize("case", OF_ALERTS)
def test_likely_cause_of_an_alert_in_grafana(case: str, tmp_path: Path) -> None:
    """Without a result, Grafana would silence the rule."""
    series, shown = OF_ALERTS[case]
    query = grafana_alerts.with_likely_cause("up > 0")
    check(query, ALERTS | series, shown, tmp_path)

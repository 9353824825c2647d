"""What *Likely cause* shows, asked of promtool."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

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


@pytest.mark.parametrize("case", CASES)
def test_likely_cause(case: str, tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("not installed: promtool, which comes with Prometheus")
    series, shown = CASES[case]
    query = expand(LIKELY_CAUSES).replace("$cluster", ".*").replace("$region", ".*")
    test = {
        "interval": "15s",
        "input_series": [
            {"series": name, "values": f"{value}x4"} for name, value in series.items()
        ],
        "promql_expr_test": [
            {
                "expr": query,
                "eval_time": "1m",
                "exp_samples": [
                    {"labels": labels, "value": value}
                    for labels, value in shown.items()
                ],
            }
        ],
    }
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"tests": [test]}), encoding="utf-8")

    tried = subprocess.run(
        [program, "test", "rules", file], capture_output=True, text=True, check=False
    )

    assert tried.returncode == 0, tried.stdout + tried.stderr

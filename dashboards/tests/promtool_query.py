"""Asks promtool what a query shows."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml


def check(
    query: str,
    series: dict[str, float],
    shown: dict[str, float],
    tmp_path: Path,
) -> None:
    """Assert that a query shows these values of series."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("not installed: promtool, which comes with Prometheus")
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

"""Asks promtool what a query shows."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml


def check(
    query: str,
    series: Mapping[str, float | str],
    shown: Mapping[str, float],
    tmp_path: Path,
    eval_time: str = "1m",
) -> None:
    """Assert that a query shows these values of series.

    Series have a number, or promtool's values at every 15 s.
    """
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("not installed: promtool, which comes with Prometheus")
    test = {
        "interval": "15s",
        "input_series": [
            {
                "series": name,
                "values": value if isinstance(value, str) else f"{value}x4",
            }
            for name, value in series.items()
        ],
        "promql_expr_test": [
            {
                "expr": query,
                "eval_time": eval_time,
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

"""The table of verdicts on the page of results."""

import json
from pathlib import Path

from keylag_dev import experiments_page
from keylag_dev.generated_tables import BLOCK

EMPTY = "before\n<!-- verdicts, by `python -m keylag_dev.experiments_page` -->\nold\n"
END = "<!-- end of verdicts -->\nafter\n"


def test_page_has_the_verdicts_of_the_results() -> None:
    text = experiments_page.PAGE.read_text(encoding="utf-8")

    assert {found["name"] for found in BLOCK.finditer(text)} == {
        *("verdicts", "capacities")
    }
    assert experiments_page.render(text) == text


def test_capacities_have_a_row_for_each_arm(tmp_path: Path) -> None:
    held = {"mean": 100.0, "low": 95.0, "high": 105.0}
    result = {
        "seconds": 3600,
        "settings": {"repeats": 4},
        "arms": [
            {"arm": "a", "held": held, "ratio": None, "verdict": "base"},
            {"arm": "b", "held": None, "ratio": None, "verdict": "cannot tell"},
        ],
    }
    folder = tmp_path / "capacity" / "caches"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(result))
    page = (EMPTY + END).replace("verdicts", "capacities")
    found = experiments_page.render(page, tmp_path)

    plan, run = "[`caches`](capacity/caches/report.md)", "4 repeats, 60 min"
    assert f"| {plan} | a | 100.00 [95.00, 105.00] | - | base | {run} |" in found
    assert f"| {plan} | b | - | - | cannot tell | {run} |" in found
    assert "old" not in found


def write_result(folder: Path, relative: dict[str, float | None]) -> None:
    """Write a result of arms with figures, with few requests, and with failures."""
    found = {"relative": relative, "verdict": "faster"}
    comparisons = [
        {"arm": "b", "method": "GET", "rounds": 6, "measures": {"p50": found}},
        {"arm": "c", "method": "GET", "rounds": 0, "measures": {}},
        {"arm": "d", "method": "GET", "rounds": 0, "measures": {}},
        {"arm": "e", "method": "GET", "rounds": 0, "measures": {}},
        {"arm": "b", "method": "POST", "measures": {"p50": found}},
    ]
    result = {
        "base": "a",
        "decision": {"method": "GET", "measure": "p50", "smallest": 0.05},
        "seconds": 90,
        "rounds": 15,
        "comparisons": comparisons,
        "requests": {
            "b": {"requests": 90, "failed": 0},
            "c": {"requests": 3, "failed": 2},
            "d": {"requests": 3, "failed": 3},
        },
    }
    folder.mkdir()
    (folder / "result.json").write_text(json.dumps(result))


def test_row_has_the_verdict_on_the_deciding_measure(tmp_path: Path) -> None:
    write_result(tmp_path / "caches", {"low": -0.1, "mid": -0.05, "high": -0.01})
    write_result(tmp_path / "wide", {"low": -1.0, "mid": -0.05, "high": None})
    found = experiments_page.render(EMPTY + END, tmp_path)

    run = "6 of 15 rounds, 1.5 min |"
    plan = "| [`caches`](caches/report.md)"
    assert (
        f"{plan} | b, a | GET, median, 5 % | -5.0 % [-10.0, -1.0] | faster | {run}"
        in found
    )
    assert f"{plan} | c, a | GET, median, 5 % | - | cannot tell: no round" in found
    assert f"{plan} | d, a | GET, median, 5 % | - | fails | 15 rounds" in found
    assert f"{plan} | e, a | GET, median, 5 % | - | fails |" in found
    assert "| b, a | GET, median, 5 % | - | faster |" in found
    assert "POST" not in found
    assert "old" not in found
    assert found.startswith("before\n")
    assert found.endswith("after\n")

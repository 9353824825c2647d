"""The verdicts of runs that repeat a plan."""

import json
from pathlib import Path

from keylag.experiment.run import OUT_OF_REACH, STOPPED_BY_ERROR
from keylag_dev.repeated_experiments import (
    is_out_of_reach,
    read_results,
    summary,
    table,
)


def write_run(folder: Path, seed: int, verdict: str) -> None:
    """Write the result of one run of 90 s."""
    found = {"relative": {"low": -0.01, "mid": 0.0, "high": 0.01}, "verdict": verdict}
    comparisons = [
        {"arm": "again", "method": "GET", "measures": {"p50": found}},
        {"arm": "again", "method": "POST", "measures": {"p50": found}},
    ]
    result = {
        "base": "base",
        "seed": seed,
        "decision": {"method": "GET", "measure": "p50"},
        "seconds": 90,
        "rounds": 5,
        "comparisons": comparisons,
    }
    (folder / str(seed)).mkdir(parents=True)
    (folder / str(seed) / "result.json").write_text(json.dumps(result))


def test_series_goes_on_after_a_run_that_the_noise_ended() -> None:
    assert is_out_of_reach({"ended": OUT_OF_REACH})
    assert not is_out_of_reach({"ended": STOPPED_BY_ERROR})
    assert not is_out_of_reach(None)


def test_each_run_counts_once(tmp_path: Path) -> None:
    for seed, verdict in enumerate(("slower", "none", "none"), start=1):
        write_run(tmp_path, seed, verdict)

    found = read_results(tmp_path)

    assert [*found] == [1, 2, 3]
    assert summary([*found.values()]) == "Runs: 3, 1.5 min each. none: 2, slower: 1."
    *_, last = table("same", found)
    assert last.startswith("| `same`, seed 3 | again, base | GET, median | +0.0 %")


def test_a_run_without_a_result_is_missing(tmp_path: Path) -> None:
    write_run(tmp_path, 2, "none")
    (tmp_path / "1").mkdir()

    assert [*read_results(tmp_path)] == [2]

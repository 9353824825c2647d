"""The verdicts of runs that repeat a plan."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from keylag.experiment.run import (
    ALL_VERDICTS_REACHED,
    NOTHING_TO_COMPARE,
    OUT_OF_REACH,
    STOPPED_BY_ERROR,
)
from keylag.experiment.run_folder import INTERRUPTED
from keylag_dev import repeated_experiments
from keylag_dev.repeated_experiments import (
    read_results,
    summary,
    table,
)

PYTHON: Final = sys.executable


def write_run(
    folder: Path, seed: int, verdict: str, ended: str = ALL_VERDICTS_REACHED
) -> None:
    """Write the result of one run of 90 s."""
    found = {"relative": {"low": -0.01, "mid": 0.0, "high": 0.01}, "verdict": verdict}
    comparisons = [
        {"arm": "again", "method": name, "rounds": 5, "measures": {"p50": found}}
        for name in ("GET", "POST")
    ]
    result = {
        "base": "base",
        "seed": seed,
        "ended": ended,
        "decision": {"method": "GET", "measure": "p50", "smallest": 0.02},
        "seconds": 90,
        "rounds": 5,
        "comparisons": comparisons,
    }
    (folder / str(seed)).mkdir(parents=True)
    (folder / str(seed) / "result.json").write_text(json.dumps(result))


@pytest.mark.parametrize(
    ("ended", "code", "runs"), [(OUT_OF_REACH, 0, 3), (STOPPED_BY_ERROR, 1, 2)]
)
def test_series_goes_on_after_a_run_that_the_noise_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: str, code: int, runs: int
) -> None:
    started: list[int] = []

    def run(words: Sequence[str]) -> int:
        seed = len(started) + 1
        started.append(seed)
        assert f"--seed={seed}" in words
        fails = seed == 2
        end = ended if fails else ALL_VERDICTS_REACHED
        write_run(tmp_path / "same", seed, "none", end)
        return int(fails)

    monkeypatch.setattr(repeated_experiments, "run_experiment", run)
    words = ["same", "--times=3", f"--out={tmp_path}"]

    assert CliRunner().invoke(repeated_experiments.main, words).exit_code == code
    assert started == [*range(1, runs + 1)]


def test_two_checkouts_share_a_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Sequence[str]] = []

    def run(words: Sequence[str]) -> int:
        started.append(words)
        write_run(tmp_path / "same", 10 + len(started), "none")
        return 0

    monkeypatch.setattr(repeated_experiments, "run_experiment", run)
    words = ["same", "--times=2", "--first=11", "--anyway", f"--out={tmp_path}"]

    assert CliRunner().invoke(repeated_experiments.main, words).exit_code == 0
    assert [(one[2], one[-1]) for one in started] == [
        ("--seed=11", "--anyway"),
        ("--seed=12", "--anyway"),
    ]


@pytest.mark.parametrize("ended", [INTERRUPTED, STOPPED_BY_ERROR, NOTHING_TO_COMPARE])
def test_incomplete_run_is_missing(tmp_path: Path, ended: str) -> None:
    write_run(tmp_path, 1, "none", ended)

    assert read_results(tmp_path) == {}


def test_ctrl_c_waits_until_the_experiment_has_stopped(tmp_path: Path) -> None:
    """The command takes a second to clean up after Ctrl-C, as if it stopped stacks."""
    command = tmp_path / "keylag"
    command.write_text(
        "#!/bin/sh\n"
        f"trap 'sleep 1; touch {tmp_path}/stopped; exit 130' INT\n"
        f"touch {tmp_path}/started\n"
        "while true; do sleep 0.1; done\n"
    )
    command.chmod(0o755)
    script = (
        "import sys; from keylag_dev.repeated_experiments import run_experiment; "
        f"sys.executable = {str(tmp_path / 'python')!r}; run_experiment(['run'])"
    )
    with subprocess.Popen(
        [PYTHON, "-c", script], start_new_session=True, stderr=subprocess.DEVNULL
    ) as series:
        while not (tmp_path / "started").exists():
            assert series.poll() is None
            time.sleep(0.05)
        os.killpg(series.pid, signal.SIGINT)

    assert series.returncode
    assert (tmp_path / "stopped").exists()


def test_each_run_counts_once(tmp_path: Path) -> None:
    for seed, verdict in enumerate(("slower", "none", "none"), start=1):
        write_run(tmp_path, seed, verdict)

    found = read_results(tmp_path)

    assert [*found] == [1, 2, 3]
    assert summary([*found.values()]) == (
        "Runs: 3, of 1.5 min each; 0 of them stopped because the asked interval was out"
        " of reach. none: 2, slower: 1. A verdict that none of 3 has, at most 100% of"
        " all runs have (95 % confidence)."
    )
    *_, last = table("same", found)
    assert last.startswith("| `same`, seed 3 | again, base | GET, median, 2 % | +0.0 %")


def test_a_run_without_a_result_is_missing(tmp_path: Path) -> None:
    write_run(tmp_path, 2, "none")
    (tmp_path / "1").mkdir()

    assert [*read_results(tmp_path)] == [2]

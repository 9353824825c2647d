"""Merging of benchmark runs."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console
from test_schedule import PLAN, run_plan

from keylag_bench.raw_results import open_csv
from keylag_bench.report import write_and_print
from merge_runs import command

FACTS = {"complete": True, "environment": {"keystone": "30.0.0", "load_before": "0.1"}}


@pytest.fixture
def make_run(tmp_path: Path) -> Any:
    """Return a function that writes the files of a run, with other facts if given."""

    def write(name: str, seed: int = 1, **facts: Any) -> str:
        plan = replace(PLAN, seed=seed)
        _, rows, call_counts = run_plan(plan)
        folder = tmp_path / name
        console = Console(file=StringIO())
        write_and_print(rows, call_counts, plan, {**FACTS, **facts}, folder, console)
        with open_csv(folder / "overhead.csv") as write_row:
            for row in rows:
                write_row(row)
        return str(folder)

    return write


def merge(*folders: str, out: Path) -> Any:
    """Merge runs; return the result of the command."""
    return CliRunner().invoke(command, [*folders, "--out", str(out)])


def test_merged_run_has_all_restarts_and_the_same_ratios(
    make_run: Any, tmp_path: Path
) -> None:
    busier = {"keystone": "30.0.0", "load_before": "0.9"}
    folders = [make_run("one"), make_run("two", 2, environment=busier, complete=False)]

    ended = merge(*folders, out=tmp_path / "both")

    one, both = (
        json.loads(Path(folder, "overhead.json").read_text())
        for folder in (folders[0], tmp_path / "both")
    )
    assert ended.exit_code == 0
    assert both["restarts"] == 2 * one["restarts"]
    for name, arms in one["workloads"].items():
        for arm, found in arms.items():
            there = both["workloads"][name][arm]
            assert there["rounds"] == 2 * found["rounds"]
            assert there["spans"] == found["spans"]
            assert there["cpu_ratio"][1] == pytest.approx(found["cpu_ratio"][1])
            assert there["restarts"] == 2 * found["restarts"]
    assert len(both["verdicts"]) == len(one["verdicts"])
    assert (one["complete"], both["complete"]) == (True, False)
    assert "get_warm_redis: CPU <= 1.03 of bare: met" in ended.output


def test_runs_of_different_releases_are_refused(make_run: Any, tmp_path: Path) -> None:
    other = make_run("other", 2, environment={"keystone": "23.0.0", "load_before": "0"})

    ended = merge(make_run("one"), other, out=tmp_path / "both")

    assert ended.exit_code == 1
    assert "differ in keystone." in ended.output
    assert not (tmp_path / "both").exists()


def test_runs_with_the_same_seed_are_refused(make_run: Any, tmp_path: Path) -> None:
    for folders in (
        [make_run("one"), make_run("two")],
        [make_run("one"), make_run("one")],
    ):
        ended = merge(*folders, out=tmp_path / "both")

        assert ended.exit_code == 1
        assert "Give each run its own --seed" in ended.output


def test_output_folder_with_a_run_is_refused(make_run: Any, tmp_path: Path) -> None:
    ended = merge(make_run("one"), make_run("two", 2), out=tmp_path / "two")

    assert ended.exit_code == 1
    assert "does not overwrite results" in ended.output


@pytest.mark.parametrize("name", ["overhead.csv", "overhead.json"])
@pytest.mark.parametrize("damage", ["gone", "cut", "binary", "empty", "other"])
def test_missing_or_damaged_files_are_reported_with_their_folder(
    make_run: Any, tmp_path: Path, name: str, damage: str
) -> None:
    folder = make_run("one")
    path = Path(folder, name)
    if damage == "gone":
        path.unlink()
    else:
        whole = path.read_bytes()
        cuts = {"cut": whole[: len(whole) - 9], "binary": b"\0\xff" * 9, "empty": b""}
        cuts["other"] = b"[]\n"
        path.write_bytes(cuts[damage])

    ended = merge(folder, out=tmp_path / "both")

    assert ended.exit_code == 1
    assert "holds no finished run" in ended.output
    assert folder in ended.output.replace("\n", "")

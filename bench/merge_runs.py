"""Merge runs of the benchmark into one with all their restarts.

Concurrent runs, one per processor, need less time for the same number of restarts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from keylag import results
from keylag.command_errors import handle_errors
from keylag.commands.common import out_folder_option
from keylag_bench.arms_and_workloads import ARMS, WORKLOADS
from keylag_bench.raw_results import CallCounts, Row, read_rows
from keylag_bench.report import write_and_print
from keylag_bench.schedule import Plan


class RunError(click.ClickException):
    """A folder has no run, or a run that cannot be merged with the others."""


@dataclass(frozen=True)
class Run:
    """A run of `overhead.py`, read from its folder."""

    folder: Path
    rows: Sequence[Row]
    result: Mapping[str, Any]
    """The content of overhead.json."""

    @property
    def seed(self) -> int:
        """The seed of its order and of the hash seeds of its processes."""
        return int(self.result["seed"])

    @property
    def restarts(self) -> int:
        """The number of restarts, including an incomplete last one."""
        return 1 + max(row.restart for row in self.rows)

    @property
    def comparable_facts(self) -> Mapping[str, object]:
        """The facts that must be equal in all runs of a merge."""
        comparable = {**self.result["environment"]}
        comparable.pop("load_before", None)
        workloads = self.result["workloads"]
        return {
            **comparable,
            "workloads and arms": {name: set(arms) for name, arms in workloads.items()},
            "requests of a round": self.result["requests"],
        }

    @property
    def call_counts(self) -> list[CallCounts]:
        """Spans and cache calls per request, by workload and arm."""
        return [
            CallCounts(workload, arm, measured["spans"], measured["cache_calls"])
            for workload, arms in self.result["workloads"].items()
            for arm, measured in arms.items()
            if "spans" in measured
        ]

    def with_restarts_from(self, first: int) -> list[Row]:
        """Return its rows, with restarts numbered from `first`."""
        return [replace(row, restart=first + row.restart) for row in self.rows]


def read_run(folder: Path) -> Run:
    """Read a run; raises RunError if files are missing or invalid."""
    try:
        result = json.loads((folder / "overhead.json").read_text(encoding="utf-8"))
        run = Run(folder, read_rows(folder / "overhead.csv"), result)
        _ = run.comparable_facts, run.seed  # raises if they are missing
        reason = "" if run.rows and result["workloads"] else "no round is complete"
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
    if reason:
        message = (
            f"{folder} holds no finished run: {reason}. "
            f"Make one with: bench/overhead.py --out {folder}"
        )
        raise RunError(message)
    return run


def check_comparable(runs: Sequence[Run]) -> None:
    """Raise RunError unless the runs have equal facts and different seeds."""
    first = runs[0]
    for number, run in enumerate(runs):
        differing = [
            key
            for key in first.comparable_facts
            if first.comparable_facts[key] != run.comparable_facts.get(key)
        ]
        if differing:
            message = (
                f"{first.folder} and {run.folder} cannot be merged: they differ in "
                f"{', '.join(differing)}."
            )
            raise RunError(message)
        if run.seed in {other.seed for other in runs[:number]}:
            message = (
                f"{run.folder} has the same seed as another run, {run.seed}, so its "
                "restarts are not independent. Give each run its own --seed."
            )
            raise RunError(message)


def merge_runs(runs: Sequence[Run]) -> tuple[list[Row], Plan]:
    """Return the rows of all runs, and the plan of the merged run."""
    first = runs[0]
    starts = [sum(run.restarts for run in runs[:number]) for number in range(len(runs))]
    rows = chain.from_iterable(map(Run.with_restarts_from, runs, starts))
    names = first.result["workloads"]
    plan = Plan(
        workloads=[
            replace(WORKLOADS[name], requests=first.result["requests"][name])
            for name in WORKLOADS
            if name in names
        ],
        arms=[arm for arm in ARMS if any(arm in arms for arms in names.values())],
        restarts=sum(run.restarts for run in runs),
        rounds=first.result["rounds"],
        seed=first.result["seed"],
    )
    return list(rows), plan


@click.command("merge_runs", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@out_folder_option("bench/merged", "the merged overhead.json")
def command(folders: tuple[Path, ...], out: Path | None) -> None:
    """Merge runs of bench/overhead.py.

    FOLDERS are their --out folders. The result is that of one run with the
    restarts of all.

    \b
    Example with two processors and one checkout for each:
      (cd a && taskset -c 0 .venv/bin/python bench/overhead.py --seed 1 --out /tmp/1) &
      (cd b && taskset -c 1 .venv/bin/python bench/overhead.py --seed 2 --out /tmp/2)
      .venv/bin/python bench/merge_runs.py /tmp/1 /tmp/2
    """  # noqa: D301 - click reads a backspace
    runs = [read_run(folder) for folder in folders]
    check_comparable(runs)
    rows, plan = merge_runs(runs)
    facts = {
        "complete": all(run.result["complete"] for run in runs),
        "environment": runs[0].result["environment"],
        "seeds": [run.result["seed"] for run in runs],
    }
    with handle_errors(), results.folder(out, "bench", "merged") as made:
        write_and_print(rows, runs[0].call_counts, plan, facts, made, Console())


if __name__ == "__main__":
    command()

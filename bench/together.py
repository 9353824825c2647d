"""Take runs of the benchmark together, as if one had made all their restarts.

One run for each processor of a machine, side by side, has its restarts sooner.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from keylag.state import CHECKOUT
from keylag_bench.report import publish
from keylag_bench.rows import Counted, Row, read
from keylag_bench.schedule import Plan
from keylag_bench.tables import ARMS, WORKLOADS


class RunError(click.ClickException):
    """A folder that holds no run, or one that is not like the others."""


@dataclass(frozen=True)
class Run:
    """What `overhead.py` left in a folder."""

    rows: Sequence[Row]
    result: Mapping[str, Any]
    """overhead.json."""

    @property
    def compares(self) -> object:
        """What has to be the same in runs that are taken together."""
        known = {**self.result["environment"], "load_before": None}
        arms = {name: sorted(arms) for name, arms in self.result["workloads"].items()}
        return known, arms, self.result["requests"]

    @property
    def counted(self) -> list[Counted]:
        """How much each call makes others do."""
        return [
            Counted(workload, arm, measured["spans"], measured["cache_calls"])
            for workload, arms in self.result["workloads"].items()
            for arm, measured in arms.items()
            if "spans" in measured
        ]

    def numbered_from(self, first: int) -> list[Row]:
        """Return its rows, with restarts that no other run has."""
        return [replace(row, restart=first + row.restart) for row in self.rows]

    @property
    def restarts(self) -> int:
        """How many it has begun."""
        return 1 + max(row.restart for row in self.rows)


def read_run(folder: Path) -> Run:
    """Read what a run left; raises RunError if it left nothing."""
    error: Exception | None = None
    rows, result = [], {}
    try:
        result = json.loads((folder / "overhead.json").read_text(encoding="utf-8"))
        rows = read(folder / "overhead.csv")
    except (OSError, ValueError) as unread:
        error = unread
    if error or not rows or not result.get("workloads"):
        message = (
            f"{folder} holds no run that has ended: {error or 'no whole block'}. "
            f"Make one with: bench/overhead.py --out {folder}"
        )
        raise RunError(message)
    return Run(rows, result)


def together(runs: Sequence[Run]) -> tuple[list[Row], Plan]:
    """Return all rows, and the plan of a run that would have made them.

    Raises RunError if the runs do not compare the same on the same work.
    """
    first = runs[0]
    if any(run.compares != first.compares for run in runs):
        message = (
            "These runs do not compare the same: they differ in workloads, arms, "
            "requests of a block, or releases. Take those together that do not."
        )
        raise RunError(message)
    ends = [sum(run.restarts for run in runs[:number]) for number in range(len(runs))]
    rows = chain.from_iterable(map(Run.numbered_from, runs, ends))
    names = first.result["workloads"]
    plan = Plan(
        workloads=[
            replace(WORKLOADS[name], requests=first.result["requests"][name])
            for name in WORKLOADS
            if name in names
        ],
        arms=[arm for arm in ARMS if any(arm in arms for arms in names.values())],
        restarts=sum(run.restarts for run in runs),
        blocks=first.result["blocks"],
        seed=first.result["seed"],
    )
    return list(rows), plan


@click.command("together", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=CHECKOUT / "out" / "bench",
    show_default="out/bench",
    help="Where overhead.json of all is left.",
)
def command(folders: tuple[Path, ...], out: Path) -> None:
    """Take runs of bench/overhead.py together.

    FOLDERS are what was given to them as --out.  Their restarts are judged as if one
    run had made them all.

    \b
    Example, with a checkout for each of two processors:
      taskset -c 0 .venv/bin/python bench/overhead.py --seed 1 --out /tmp/one
      taskset -c 1 .venv/bin/python bench/overhead.py --seed 2 --out /tmp/two
      .venv/bin/python bench/together.py /tmp/one /tmp/two
    """  # noqa: D301 - click reads a backspace
    runs = [read_run(folder) for folder in folders]
    rows, plan = together(runs)
    facts = {
        "complete": all(run.result["complete"] for run in runs),
        "environment": runs[0].result["environment"],
        "seeds": [run.result["seed"] for run in runs],
    }
    publish(rows, runs[0].counted, plan, facts, out, Console())


if __name__ == "__main__":
    command()

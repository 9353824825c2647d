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

from keylag import results
from keylag.command_errors import handle_errors
from keylag.commands.common import out_folder_option
from keylag_bench.report import publish
from keylag_bench.rows import Counted, Row, read
from keylag_bench.schedule import Plan
from keylag_bench.tables import ARMS, WORKLOADS


class RunError(click.ClickException):
    """A folder that holds no run, or one that is not like the others."""


@dataclass(frozen=True)
class Run:
    """What `overhead.py` left in a folder."""

    folder: Path
    rows: Sequence[Row]
    result: Mapping[str, Any]
    """overhead.json."""

    @property
    def seed(self) -> int:
        """What its order was drawn from, and how its processes were started."""
        return int(self.result["seed"])

    @property
    def restarts(self) -> int:
        """How many it has begun."""
        return 1 + max(row.restart for row in self.rows)

    @property
    def likeness(self) -> Mapping[str, object]:
        """What has to be the same in runs that are taken together."""
        known = {**self.result["environment"]}
        known.pop("load_before", None)
        workloads = self.result["workloads"]
        return {
            **known,
            "workloads and arms": {name: set(arms) for name, arms in workloads.items()},
            "requests of a block": self.result["requests"],
        }

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


def read_run(folder: Path) -> Run:
    """Read what a run left; raises RunError if it left nothing."""
    try:
        result = json.loads((folder / "overhead.json").read_text(encoding="utf-8"))
        run = Run(folder, read(folder / "overhead.csv"), result)
        _ = run.likeness, run.seed  # that they can be read
        why = "" if run.rows and result["workloads"] else "it measured no whole block"
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
    if why:
        message = (
            f"{folder} holds no run that has ended: {why}. "
            f"Make one with: bench/overhead.py --out {folder}"
        )
        raise RunError(message)
    return run


def check(runs: Sequence[Run]) -> None:
    """Raise RunError unless they are different runs of the same measurement."""
    first = runs[0]
    for number, run in enumerate(runs):
        differing = [
            key
            for key in first.likeness
            if first.likeness[key] != run.likeness.get(key)
        ]
        if differing:
            message = (
                f"{first.folder} and {run.folder} do not measure the same: they differ "
                f"in {', '.join(differing)}."
            )
            raise RunError(message)
        if run.seed in {other.seed for other in runs[:number]}:
            message = (
                f"{run.folder} has the seed of a run before it, {run.seed}, so its "
                "restarts are no others. Give each run its own --seed."
            )
            raise RunError(message)


def together(runs: Sequence[Run]) -> tuple[list[Row], Plan]:
    """Return all rows, and the plan of a run that would have made them."""
    first = runs[0]
    starts = [sum(run.restarts for run in runs[:number]) for number in range(len(runs))]
    rows = chain.from_iterable(map(Run.numbered_from, runs, starts))
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
@out_folder_option("bench/together", "overhead.json of all")
def command(folders: tuple[Path, ...], out: Path | None) -> None:
    """Take runs of bench/overhead.py together.

    FOLDERS are what was given to them as --out.  Their restarts are judged as if one
    run had made them all.

    \b
    Example, with a checkout for each of two processors:
      (cd a && taskset -c 0 .venv/bin/python bench/overhead.py --seed 1 --out /tmp/1) &
      (cd b && taskset -c 1 .venv/bin/python bench/overhead.py --seed 2 --out /tmp/2)
      .venv/bin/python bench/together.py /tmp/1 /tmp/2
    """  # noqa: D301 - click reads a backspace
    runs = [read_run(folder) for folder in folders]
    check(runs)
    rows, plan = together(runs)
    facts = {
        "complete": all(run.result["complete"] for run in runs),
        "environment": runs[0].result["environment"],
        "seeds": [run.result["seed"] for run in runs],
    }
    with handle_errors(), results.folder(out, "bench", "together") as made:
        publish(rows, runs[0].counted, plan, facts, made, Console())


if __name__ == "__main__":
    command()

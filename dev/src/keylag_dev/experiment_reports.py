"""Runs the plans of experiments/ one after the other, and keeps their reports.

    python -m keylag_dev.experiment_reports
    python -m keylag_dev.experiment_reports cache-backends blog-table

Nothing else may run meanwhile.  Each run is in a folder of its own below `--out`, and
its report.md and result.json in docs/experiments.  Another call leaves complete runs
alone, and goes on with one that was interrupted.
"""

import shutil
import sys
import tomllib
from pathlib import Path
from typing import Final

import click

from keylag.experiment.stack_setup import PLANS_FOLDER
from keylag_dev.experiments_page import PAGE, RESULTS, render
from keylag_dev.repeated_experiments import (
    read_complete,
    run_experiment,
    words_of_run,
)

SEED: Final = 7
KEPT_FILES: Final = ("report.md", "result.json")


def own_plans(folder: Path = PLANS_FOLDER) -> list[str]:
    """Return the plans that need no Keystones that run already."""
    return [
        path.stem
        for path in sorted(folder.glob("*.toml"))
        if "remote" not in tomllib.loads(path.read_text(encoding="utf-8"))
    ]


def keep(plan: str, folder: Path, results: Path = RESULTS) -> None:
    """Copy the report of a run to docs/experiments."""
    kept = results / plan
    kept.mkdir(exist_ok=True)
    for name in KEPT_FILES:
        shutil.copyfile(folder / name, kept / name)


@click.command()
@click.argument("plans", nargs=-1)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/reports"),
    show_default=True,
    help="Folder of the runs, with one for each plan.",
)
def main(plans: tuple[str, ...], out: Path) -> None:
    """Run plans of experiments/, or those that are named, and keep their reports."""
    for plan in plans or own_plans():
        folder = out / plan
        if not read_complete(folder):
            code = run_experiment(words_of_run(plan, SEED, folder))
            if not read_complete(folder):
                sys.exit(code or 1)
        keep(plan, folder)
        PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Measures the capacity of plans of experiments/, and keeps the reports.

    python -m keylag_dev.capacity_reports cache-backends

Nothing else may run meanwhile.  Each measurement is in a folder of its own below
`--out`, and its report.md and result.json in docs/experiments/capacity.  Another call
leaves complete ones alone; one that was interrupted has to be moved away, because a
ramp cannot go on.
"""

import json
import sys
from pathlib import Path
from typing import Final

import click

from keylag.experiment.capacity.run import DONE
from keylag_dev.experiment_reports import SEED, keep, update_page
from keylag_dev.experiments_page import CAPACITIES, RESULTS
from keylag_dev.repeated_experiments import run_experiment

FOLDER: Final = RESULTS / CAPACITIES


def is_complete(folder: Path) -> bool:
    """Return whether every arm of a measurement was tried."""
    path = folder / "result.json"
    return path.exists() and json.loads(path.read_text())["ended"] == DONE


@click.command()
@click.argument("plans", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/capacities"),
    show_default=True,
    help="Folder of the measurements, with one for each plan.",
)
@click.option(
    "--trial",
    type=click.FloatRange(1, 180),
    default=20,
    show_default=True,
    help="As for `keylag experiment capacity`.",
)
def main(plans: tuple[str, ...], out: Path, trial: float) -> None:
    """Measure the capacity of the named plans of experiments/, and keep the reports."""
    for plan in plans:
        folder = out / plan
        if not is_complete(folder):
            options = [f"--seed={SEED}", f"--out={folder}", f"--trial={trial:g}"]
            code = run_experiment(["capacity", plan, *options])
            if not is_complete(folder):
                sys.exit(code or 1)
        keep(plan, folder, FOLDER)
        update_page()


if __name__ == "__main__":
    main()

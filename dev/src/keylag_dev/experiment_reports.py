"""Runs the plans of experiments/ one after the other, and keeps their reports.

    python -m keylag_dev.experiment_reports
    python -m keylag_dev.experiment_reports cache-backends blog-table

Nothing else may run meanwhile; a plan that names a Keystone of its own is run whatever
belongs to that.  Each run is in a folder of its own below `--out`, and its report.md
and result.json in docs/experiments.  Another call leaves complete runs alone, and goes
on with one that was interrupted.  A run that noise has ended, that lacks an arm, or
that had another version of its plan, replaces no report.
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
    is_out_of_reach,
    read_complete,
    run_experiment,
    words_of_run,
)

RUNS: Final = Path("out/reports")
"""The folder of the runs, with one for each plan."""
SEED: Final = 7
KEPT_FILES: Final = ("report.md", "result.json")


def own_plans(folder: Path = PLANS_FOLDER) -> list[str]:
    """Return the plans that need no Keystones that run already."""
    return [
        path.stem
        for path in sorted(folder.glob("*.toml"))
        if "remote" not in tomllib.loads(path.read_text(encoding="utf-8"))
    ]


def reason_against(plan: str, folder: Path, plans: Path = PLANS_FOLDER) -> str:
    """Return why the run in a folder does not speak for its plan; empty if it does."""
    result, shipped = read_complete(folder), plans / f"{plan}.toml"
    if not result:
        return "it has not come to its end; run this command again"
    if is_out_of_reach(result):
        return "noise has ended it; move it away and run it on a quieter machine"
    if (folder / "plan.toml").read_bytes() != shipped.read_bytes():
        return "its plan has changed since; move it away and run the plan again"
    settings = tomllib.loads(shipped.read_text(encoding="utf-8"))
    # A run folder's plan may be edited, but not what its first rounds have said.
    if check := result.get("noise_check"):
        asked, asks = check["forecast"]["asked"], settings["decision"]["smallest"]
        if asked != asks:
            return (
                f"it asked for {asked:.0%} while it ran, and its plan asks for "
                f"{asks:.0%}; move it away and run the plan again"
            )
    if missing := [
        arm for arm in settings["arms"] if arm not in result["plan"]["arms"]
    ]:
        return f"it lacks {', '.join(missing)}; install what the report names"
    return ""


def keep(plan: str, folder: Path, results: Path = RESULTS) -> None:
    """Copy the report of a run to docs/experiments."""
    kept = results / plan
    kept.mkdir(parents=True, exist_ok=True)
    for name in KEPT_FILES:
        shutil.copyfile(folder / name, kept / name)


def update_page() -> None:
    """Write the tables of docs/experiments/README.md from the kept results."""
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


@click.command()
@click.argument("plans", nargs=-1)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=RUNS,
    show_default=True,
    help="Folder of the runs, with one for each plan.",
)
def main(plans: tuple[str, ...], out: Path) -> None:
    """Run plans of experiments/, or those that are named, and keep their reports."""
    failed = False
    own = own_plans()
    for plan in plans or own:
        folder = out / plan
        if not read_complete(folder):
            # What keeps the machine busy may belong to such a Keystone.
            words = words_of_run(plan, SEED, folder, anyway=plan not in own)
            code = run_experiment(words)
            if not read_complete(folder):
                sys.exit(code or 1)
        if reason := reason_against(plan, folder):
            click.echo(f"{folder}: not kept: {reason}.", err=True)
            failed = True
            continue
        keep(plan, folder)
        update_page()
    sys.exit(failed)


if __name__ == "__main__":
    main()

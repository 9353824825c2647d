"""Judges the recorded windows of a score by the rules of today.

    python -m keylag_dev.diagnosis_judge out/diagnosis/TIME

Nothing is planted: `make test-diagnosis` has left what it measured in each window.  The
result is a folder of its own, like that of a score.
"""

import time
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from keylag_dev.diagnosis_score import judge, show
from keylag_dev.diagnosis_scores import append_score, read_scores
from keylag_dev.recorded_facts import recall


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/diagnosis"))
def main(folder: Path, out: Path) -> None:
    """Judge the recorded windows of a score by the rules of today."""
    console = Console()
    judged = out / time.strftime("%Y-%m-%dT%H-%M-%S")
    judged.mkdir(parents=True)
    for one in read_scores(folder):
        append_score(replace(one, **judge(recall(one.recorded))), judged)
    show(read_scores(judged), console)
    console.print(f"Written to {judged}.")


if __name__ == "__main__":
    main()

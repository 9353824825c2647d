"""Runs a plan many times, and says how often it claims a difference, and how fast.

    python -m keylag_dev.repeated_experiments same --times 20
    python -m keylag_dev.repeated_experiments planted --times 10

Run N has the seed N and a folder of its own below `--out`.  Another call with the same
folder makes the runs that are missing.  Of a plan with equal arms each claim is false;
of a plan with a planted effect each is right that has its direction.

Two checkouts can share a series, each with a processor of its own:

    taskset -c 0 python -m keylag_dev.repeated_experiments same --times 10 --anyway
    taskset -c 1 python -m keylag_dev.repeated_experiments same --times 10 --anyway \
        --first 11
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import click

from keylag.experiment.plan import SECONDS_PER_MINUTE
from keylag.experiment.run import NOTHING_TO_COMPARE, OUT_OF_REACH, STOPPED_BY_ERROR
from keylag.experiment.run_folder import INTERRUPTED, RUNNING
from keylag_dev.experiments_page import HEADINGS, rows

Result = Mapping[str, Any]
"""What a run has in its result.json."""
INCOMPLETE: Final = frozenset(
    (RUNNING, INTERRUPTED, STOPPED_BY_ERROR, NOTHING_TO_COMPARE)
)
"""Ends of runs that do not count: the next call goes on with them."""


def read_complete(folder: Path) -> Result | None:
    """Return the result of the run in a folder; None if it has not come to its end."""
    path = folder / "result.json"
    result = json.loads(path.read_text()) if path.exists() else None
    return result if result and result["ended"] not in INCOMPLETE else None


def read_results(folder: Path) -> dict[int, Result]:
    """Return the results of the complete runs in a folder, by their seeds."""
    complete = [one for run in folder.glob("*") if (one := read_complete(run))]
    return {one["seed"]: one for one in sorted(complete, key=lambda one: one["seed"])}


def summary(results: Sequence[Result]) -> str:
    """Return the number of runs with each verdict, and their mean time.

    Of what none of n runs did, 3/n is the upper bound at 95 %.
    """
    verdicts = Counter(verdict for one in results for verdict in _verdicts(one))
    counts = ", ".join(f"{name}: {number}" for name, number in verdicts.most_common())
    minutes = fmean(one["seconds"] for one in results) / SECONDS_PER_MINUTE
    noisy = sum(map(is_out_of_reach, results))
    runs = len(results)
    return (
        f"Runs: {runs}, of {minutes:.1f} min each; {noisy} of them stopped because the"
        f" asked interval was out of reach. {counts}. A verdict that none of {runs}"
        f" has, at most {min(3 / runs, 1):.0%} of all runs have (95 % confidence)."
    )


def _verdicts(result: Result) -> Iterator[str]:
    decision = result["decision"]
    for one in result["comparisons"]:
        found = one["measures"].get(decision["measure"])
        if one["method"] == decision["method"] and found:
            yield found["verdict"]


def table(plan: str, results: Mapping[int, Result]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield from HEADINGS
    for seed, one in results.items():
        yield from rows(f"`{plan}`, seed {seed}", one)


def is_out_of_reach(result: Result | None) -> bool:
    """Return whether the noise ended a run: it has no verdict, and the next may."""
    return result is not None and result["ended"] == OUT_OF_REACH


def run_experiment(words: Sequence[str]) -> int:
    """Run `keylag experiment`, and return its exit code.

    Ctrl-C reaches the command as well; this waits until it has stopped its stacks.
    """
    keylag = Path(sys.executable).with_name("keylag")
    process = subprocess.Popen([keylag, "experiment", *words])
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise


def words_of_run(
    plan: str, seed: int, folder: Path, *, anyway: bool = False
) -> list[str]:
    """Return the words that make a run, or go on with one that was interrupted."""
    if (folder / "run.json").exists():
        return ["resume", str(folder)]
    words = ["run", plan, f"--seed={seed}", f"--out={folder}"]
    return [*words, "--anyway"] if anyway else words


@click.command()
@click.argument("plan")
@click.option("--times", type=click.IntRange(1), default=20, show_default=True)
@click.option(
    "--first",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Seed of the first run.",
)
@click.option("--anyway", is_flag=True, help="As for `keylag experiment run`.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/repeated"),
    show_default=True,
    help="Folder of the runs, with one for each plan.",
)
def main(
    plan: str,
    times: int,
    first: int,
    anyway: bool,  # noqa: FBT001 - click passes it by name
    out: Path,
) -> None:
    """Run a plan with one seed after the other, and print the verdicts of all runs."""
    folder = out / Path(plan).stem
    for seed in range(first, first + times):
        if seed not in read_results(folder):
            words = words_of_run(plan, seed, folder / str(seed), anyway=anyway)
            code = run_experiment(words)
            if code and not is_out_of_reach(read_results(folder).get(seed)):
                sys.exit(code)
    found = read_results(folder)
    click.echo("\n".join(table(plan, found)))
    click.echo(f"\n{summary([*found.values()])}")


if __name__ == "__main__":
    main()

"""Measure what Keylag costs a Keystone, beside what else there is; `make bench`."""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from keylag import results
from keylag.command_errors import INTERRUPTED, handle_errors
from keylag.commands.common import out_folder_option
from keylag_bench.process import Processes
from keylag_bench.report import Progress, publish
from keylag_bench.results import environment
from keylag_bench.rows import Counted, Row, written
from keylag_bench.schedule import Plan, Schedule
from keylag_bench.servers import open_servers
from keylag_bench.sink import open_sink
from keylag_bench.tables import ARMS, BASE, WORKLOADS

QUICK: Final = 2
"""Restarts and blocks of a quick run."""
KIND: Final = "bench"


@dataclass
class Kept:
    """What has been measured so far."""

    rows: list[Row] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    exports: Counter[str] = field(default_factory=Counter)
    """What was exported over OTLP, by path."""
    complete: bool = False


def measure(plan: Plan, out: Path, console: Console) -> Kept:
    """Measure; Ctrl-C ends it early and keeps what there is.

    Raises StackError or ToolError if a server or a Keystone does not work.
    """
    kept = Kept()
    try:
        with (
            written(out / "overhead.csv") as write,
            open_sink() as sink,
            open_servers(sink.port, console) as servers,
        ):

            def keep(row: Row) -> None:
                write(row)
                kept.rows.append(row)

            kept.exports = sink.received
            executor, count = Processes(servers), kept.counted.append
            Schedule(plan, executor, keep, count, Progress(console)).run()
            kept.complete = True
    except KeyboardInterrupt:
        console.print("Interrupted; this is what there is so far.")
    return kept


@click.command("overhead", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--workload",
    "workloads",
    type=click.Choice(list(WORKLOADS)),
    multiple=True,
    help="May be given more than once.  [default: all]",
)
@click.option(
    "--arms",
    type=click.Choice([arm for arm in ARMS if arm != BASE]),
    multiple=True,
    help=f"Beside {BASE}; may be given more than once.  [default: all]",
)
@click.option("--restarts", type=click.IntRange(1), default=6, show_default=True)
@click.option(
    "--blocks",
    type=click.IntRange(1),
    default=12,
    show_default=True,
    help="Of each arm and workload in each restart.",
)
@click.option(
    "--requests",
    type=click.IntRange(1),
    help="In a block.  [default: as many as take about half a second]",
)
@click.option("--seed", default=1, show_default=True, help="Of the order.")
@click.option("--quick", is_flag=True, help="See that it works; proves nothing.")
@out_folder_option("bench/overhead", "overhead.json and overhead.csv")
def command(  # noqa: PLR0913, PLR0917 - one for each option
    workloads: tuple[str, ...],
    arms: tuple[str, ...],
    restarts: int,
    blocks: int,
    requests: int | None,
    seed: int,
    out: Path | None,
    *,
    quick: bool,
) -> None:
    """Measure what instrumentation costs a Keystone.

    Runs bare Keystone beside Keylag, OpenTelemetry's own instrumentations and
    OSProfiler, in random blocks of the same calls, and prints by how much CPU and
    wall time grow. An hour or so; Ctrl-C ends it with what there is.

    \b
    Examples:
      make bench
      make bench QUICK=1
      .venv/bin/python bench/overhead.py --workload get_cache_off --arms keylag
    """  # noqa: D301 - click reads a backspace
    plan = Plan(
        workloads=[WORKLOADS[name] for name in workloads or WORKLOADS],
        arms=[arm for arm in ARMS if arm == BASE or not arms or arm in arms],
        restarts=restarts,
        blocks=blocks,
        seed=seed,
    ).with_requests(requests)
    run(plan.shortened(QUICK) if quick else plan, out, Console())


def run(plan: Plan, out: Path | None, console: Console) -> None:
    """Measure, write and show; exits with 130 if it was interrupted."""
    found = environment()
    with handle_errors(), results.folder(out, KIND, "overhead") as made:
        kept = measure(plan, made, console)
        show(kept, plan, found, made, console)
    if not kept.complete:
        sys.exit(INTERRUPTED)


def show(
    kept: Kept, plan: Plan, found: Mapping[str, Any], out: Path, console: Console
) -> None:
    """Judge and show what was measured."""
    facts = {
        "complete": kept.complete,
        "exports": kept.exports,
        "environment": found,
    }
    publish(kept.rows, kept.counted, plan, facts, out, console)


if __name__ == "__main__":
    command()

"""Measure the overhead of Keylag and of other instrumentation; `make bench`."""

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
from keylag_bench.arms_and_workloads import ARMS, BASE, WORKLOADS
from keylag_bench.keystone_processes import ProcessExecutor
from keylag_bench.otlp_sink import open_otlp_sink
from keylag_bench.raw_results import CallCounts, Row, open_csv
from keylag_bench.report import Progress, write_and_print
from keylag_bench.results import describe_environment
from keylag_bench.schedule import Plan, Schedule
from keylag_bench.servers import open_servers

QUICK_SIZE: Final = 2
"""Restarts of a quick run, and rounds of each."""
KIND: Final = "bench"


@dataclass
class Measurements:
    """What a run has measured so far."""

    rows: list[Row] = field(default_factory=list)
    call_counts: list[CallCounts] = field(default_factory=list)
    exports: Counter[str] = field(default_factory=Counter)
    """Export requests over OTLP, by path."""
    complete: bool = False


def measure(plan: Plan, out: Path, console: Console) -> Measurements:
    """Run a plan; Ctrl-C ends it early and keeps its rows.

    Raises StackError or ToolError if a server or Keystone fails.
    """
    measurements = Measurements()
    try:
        with (
            open_csv(out / "overhead.csv") as write,
            open_otlp_sink() as sink,
            open_servers(sink.port, console) as servers,
        ):

            def write_row(row: Row) -> None:
                write(row)
                measurements.rows.append(row)

            measurements.exports = sink.requests_by_path
            executor, count = ProcessExecutor(servers), measurements.call_counts.append
            Schedule(plan, executor, write_row, count, Progress(console)).run()
            measurements.complete = True
    except KeyboardInterrupt:
        console.print("Interrupted. The results so far:")
    return measurements


@click.command("overhead", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--workload",
    "workloads",
    type=click.Choice(list(WORKLOADS)),
    multiple=True,
    help="Workload; repeat the option for more.  [default: all]",
)
@click.option(
    "--arms",
    type=click.Choice([arm for arm in ARMS if arm != BASE]),
    multiple=True,
    help=f"Arm beside {BASE}; repeat the option for more.  [default: all]",
)
@click.option(
    "--restarts",
    type=click.IntRange(1),
    default=6,
    show_default=True,
    help="How often all processes are restarted.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=12,
    show_default=True,
    help="Rounds of each workload in each restart.",
)
@click.option(
    "--requests",
    type=click.IntRange(1),
    help="Requests of each arm per round.  [default: about half a second of them]",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random order.")
@click.option("--quick", is_flag=True, help="Test run without conclusive results.")
@out_folder_option("bench/overhead", "overhead.json and overhead.csv")
def command(  # noqa: PLR0913, PLR0917 - one for each option
    workloads: tuple[str, ...],
    arms: tuple[str, ...],
    restarts: int,
    rounds: int,
    requests: int | None,
    seed: int,
    out: Path | None,
    *,
    quick: bool,
) -> None:
    """Measure the overhead of instrumentation in Keystone.

    Runs the same calls with bare Keystone, Keylag, OpenTelemetry's own
    instrumentations and OSProfiler, in random order, and prints the ratios of CPU
    and wall time. Takes about an hour; Ctrl-C ends it with the results so far.

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
        rounds=rounds,
        seed=seed,
    ).with_requests(requests)
    run_benchmark(plan.with_size(QUICK_SIZE) if quick else plan, out, Console())


def run_benchmark(plan: Plan, out: Path | None, console: Console) -> None:
    """Measure, write and print the results; exits with 130 after Ctrl-C."""
    environment = describe_environment()
    with handle_errors(), results.folder(out, KIND, "overhead") as folder:
        measurements = measure(plan, folder, console)
        judge_and_print(measurements, plan, environment, folder, console)
    if not measurements.complete:
        sys.exit(INTERRUPTED)


def judge_and_print(
    measurements: Measurements,
    plan: Plan,
    environment: Mapping[str, Any],
    out: Path,
    console: Console,
) -> None:
    """Analyse, write and print the results."""
    facts = {
        "complete": measurements.complete,
        "exports": measurements.exports,
        "environment": environment,
    }
    write_and_print(
        measurements.rows, measurements.call_counts, plan, facts, out, console
    )


if __name__ == "__main__":
    command()

"""Measures dashboards and rules on the series of a large cloud."""

import json
import os
import pickle
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Final

import click
import yaml
from rich.console import Console
from rich.table import Table

from keylag.command_errors import handle_errors
from keylag.commands.common import output_option
from keylag.errors import KeylagError
from keylag.state import locked, state_folder
from keylag_cloud import collector, exposition, live, prometheus, recorder
from keylag_cloud.fill import Block, Filling, Plan, fill, prepare
from keylag_cloud.grafana import RANGES, boards
from keylag_cloud.model import Cloud
from keylag_cloud.opening import PanelTime, measure_board
from keylag_cloud.prometheus import BLOCK_SECONDS
from keylag_dashboards.__main__ import FOLDER

RULES: Final = FOLDER / "rules" / "keylag.yml"
LIMIT_SECONDS: Final = 2
SLOWEST: Final = 25
"""Panels in the table; the JSON has all."""
FILES: Final = ("keystone", "service", "exporters")


class NotFilledError(KeylagError):
    """There are no data to measure."""


def _folder() -> Path:
    return state_folder() / "large-cloud"


@contextmanager
def _working_folder() -> Iterator[Path]:
    """Yield the folder of the data; one command works in it at a time."""
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    with handle_errors(), locked(folder / "lock"):
        # promtool and the threads of Prometheus leave nothing outside of it.
        os.environ["TMPDIR"] = str(folder)
        yield folder


controllers_option = click.option(
    "--controllers",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Controllers, each with a Collector and the exporters.",
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Keystone's workers on each controller.",
)
seed_option = click.option(
    "--seed",
    default=1,
    show_default=True,
    help="Seed of the differences and the noise.",
)


@click.group("large_cloud", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Measure dashboards and rules on the series of a large cloud.

    `fill` makes blocks of a Prometheus with the series that a cloud of 300 workers
    would have: a day of scraped series and a week of recorded ones, with a daily
    rhythm and an incident of twenty minutes, four hours before the end. `panels` opens
    every dashboard on them, and fails if a panel takes longer than two seconds.
    `live` serves the same series as Collectors do, and measures what a Prometheus with
    the recording rules needs. `collector` exports them to a real Collector.

    The labels are those of one worker of a real stack, in dashboards/bench/recorded;
    `series` counts them and `record` records them anew.

    \b
    Examples:
      large_cloud.py series
      large_cloud.py fill --parallel 2
      large_cloud.py panels
      large_cloud.py live --minutes 5
      large_cloud.py collector --workers 100
      large_cloud.py delete
    """  # noqa: D301 - click reads a backspace


@command.command("record")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
def record_command(urls: tuple[str, ...]) -> None:
    """Record the series of a busy worker from a stack that runs.

    URL is a page of metrics, of the Collector or of `keylag-exporter`. Before, start
    `keylag up --cache memcache_pool --with service`, send it the load plans, and call
    its other routes with `python -m keylag_cloud.traffic`.
    """
    with handle_errors():
        for name, number in recorder.record(urls).items():
            click.echo(f"{name}: {number} series")


@command.command("series")
@output_option()
def series_command(form: str) -> None:
    """Count the series of one worker and of the exporters, by metric."""
    counts = {name: exposition.count_by_metric(exposition.load(name)) for name in FILES}
    if form == "json":
        click.echo(json.dumps(counts, indent=2))
        return
    for name, by_metric in counts.items():
        table = Table("metric", "series", title=f"{name}: {sum(by_metric.values())}")
        for metric, number in by_metric.items():
            table.add_row(metric, str(number))
        Console().print(table)


@command.command("fill")
@controllers_option
@workers_option
@seed_option
@click.option(
    "--hours",
    type=click.IntRange(0),
    default=24,
    show_default=True,
    help="Hours of scraped series, a multiple of 2.",
)
@click.option(
    "--recorded-hours",
    type=click.IntRange(2),
    default=168,
    show_default=True,
    help="Hours of recorded series, a multiple of 2.",
)
@click.option(
    "--scrape-interval",
    "scrape_seconds",
    type=click.IntRange(15),
    default=60,
    show_default=True,
    help="Seconds between two samples of scraped series.",
)
@click.option(
    "--parallel",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Blocks made at the same time; each takes a processor and some GB of memory.",
)
def fill_command(  # noqa: PLR0913, PLR0917 - one for each option
    controllers: int,
    workers: int,
    seed: int,
    hours: int,
    recorded_hours: int,
    scrape_seconds: int,
    parallel: int,
) -> None:
    """Make the blocks; replaces those of an earlier call.

    Series that no panel reads have one sample in each block: they make the index as
    large as it would be. The blocks are made from the last to the first. After Ctrl-C
    those that are complete remain, and `panels` measures with them.
    """
    cloud = Cloud(controllers, workers, seed=seed)
    end = int(time.time()) // BLOCK_SECONDS * BLOCK_SECONDS
    filling = Filling(cloud, end, hours, recorded_hours, scrape_seconds)
    console = Console(stderr=True)
    with _working_folder() as folder:
        _delete(folder)
        console.print("Evaluating the recording rules on a small cloud")
        document = yaml.safe_load(RULES.read_text(encoding="utf-8"))
        plan = prepare(filling, document, folder)
        (folder / "plan").write_bytes(pickle.dumps(plan))
        console.print(
            f"{len(plan.recorded)} recorded series, {len(filling.windows())} blocks"
        )
        started = time.monotonic()

        def report(block: Block, done: int, due: int) -> None:
            shown = time.strftime("%d %b %H:%M", time.gmtime(block.start))
            console.print(
                f"{done} of {due}: {shown} UTC, {block.samples / 1e6:.1f} M samples, "
                f"{time.monotonic() - started:.0f} s so far"
            )

        fill(plan, folder, parallel, report)
        console.print("Merging the blocks of two hours, as Prometheus does with time")
        prometheus.compact(folder / "data", folder / "prometheus.log")


@command.command("panels")
@click.option(
    "--range",
    "ranges",
    type=click.Choice(list(RANGES)),
    multiple=True,
    help="Time shown; repeat the option for more.  [default: all]",
)
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Openings with warm files, of which the median counts.",
)
@output_option("Output format; the table has the slowest panels, JSON has all.")
def panels_command(ranges: tuple[str, ...], repeats: int, form: str) -> None:
    """Open every dashboard, and print the seconds of each panel.

    Grafana is left out: the queries are those that it sends for a panel of 1600
    pixels, six panels at a time, as a browser does. Ctrl-C prints the results so far.
    Exits with 1 if a panel takes longer than two seconds.
    """
    console = Console(stderr=True)
    rows: list[PanelTime] = []
    with _working_folder() as folder, suppress(KeyboardInterrupt):
        end = _plan(folder).filling.end
        for name, board in product(ranges or RANGES, boards()):
            shown = name, RANGES[name]
            measured = measure_board(board, folder, shown, end, repeats)
            rows += measured
            slowest = max(measured, key=lambda one: one.worst)
            console.print(
                f"{board.stem} over {name}: up to {slowest.worst:.2f} s, "
                f"{slowest.panel}"
            )
    rows.sort(key=lambda one: -one.worst)
    if form == "json":
        found = [{**asdict(one), "worst": one.worst} for one in rows]
        click.echo(json.dumps(found, indent=2))
    else:
        _print_panels(rows)
    slow = sum(one.worst > LIMIT_SECONDS for one in rows)
    console.print(f"{slow} of {len(rows)} panels take longer than {LIMIT_SECONDS} s")
    sys.exit(1 if slow else 0)


@command.command("live")
@controllers_option
@workers_option
@seed_option
@click.option(
    "--scrape-interval",
    "scrape_seconds",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Seconds between two scrapes.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    default=3,
    show_default=True,
    help="How long to observe.",
)
@click.option(
    "--tokens-only",
    is_flag=True,
    help="Without breakdowns and histograms of other routes.",
)
def live_command(  # noqa: PLR0913 - one for each option
    controllers: int,
    workers: int,
    seed: int,
    scrape_seconds: int,
    minutes: float,
    *,
    tokens_only: bool,
) -> None:
    """Scrape the series of a cloud, and print what Prometheus and the rules need."""
    with _working_folder() as folder:
        shutil.rmtree(folder / "live", ignore_errors=True)
        cloud = Cloud(controllers, workers, seed=seed, tokens_only=tokens_only)
        result = live.measure(cloud, RULES, folder, scrape_seconds, minutes)
        shutil.rmtree(folder / "live", ignore_errors=True)
    click.echo(json.dumps(asdict(result), indent=2))


@command.command("collector")
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Workers that export to the Collector.",
)
@click.option(
    "--memory",
    "memory_mib",
    type=click.IntRange(64),
    default=4096,
    show_default=True,
    help="Limit of the Collector's memory_limiter, in MiB.",
)
@click.option(
    "--config",
    "configs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="File that is added to deploy/otel-collector/config.yaml; repeatable.",
)
def collector_command(workers: int, memory_mib: int, configs: tuple[Path, ...]) -> None:
    """Export the series of many workers to a Collector, and print what it needs."""
    with _working_folder() as folder:
        samples = exposition.load("keystone")
        cost = collector.measure(samples, workers, folder, memory_mib, configs)
    click.echo(json.dumps(asdict(cost), indent=2))


@command.command("delete")
def delete_command() -> None:
    """Delete the blocks."""
    with _working_folder() as folder:
        _delete(folder)


def _delete(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()


def _plan(folder: Path) -> Plan:
    try:
        plan: Plan = pickle.loads((folder / "plan").read_bytes())  # noqa: S301 - its own
    except FileNotFoundError:
        message = "There are no blocks. Make them: large_cloud.py fill"
        raise NotFilledError(message) from None
    return plan


def _print_panels(rows: Sequence[PanelTime]) -> None:
    columns = ("cold", "together", "alone", "CPU")
    table = Table("dashboard", "panel", "range", *(f"{one} s" for one in columns))
    for row in rows[:SLOWEST]:
        times = (row.cold, row.together, row.alone, row.cpu)
        table.add_row(row.board, row.panel, row.range, *(f"{one:.2f}" for one in times))
    Console().print(table)


if __name__ == "__main__":
    command()

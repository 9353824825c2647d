"""`keylag demo`: starts a stack, sends token requests, prints the breakdown."""

import json
import shutil
from pathlib import Path

import click
from rich.console import Console

from keylag import demo, failed_requests, results, sql_comparison
from keylag.commands.common import (
    address_lines,
    out_folder_option,
    output_option,
)
from keylag.commands.setup import set_up
from keylag.report import render_terminal
from keylag.stack import Stack
from keylag.stack_shutdown import stop_stack
from keylag.state import state_folder
from keylag.tools import DEMO_TOOLS, TOOLS, Tools


@click.command("demo")
@click.option(
    "--keep",
    is_flag=True,
    help="Also start the Collector and Prometheus, keep the stack running and print its"
    " URLs; `keylag down` stops it.",
)
@out_folder_option("demo", "breakdown.json, report.html and the samples")
@output_option("Output format of the result.")
def command(out: Path | None, form: str, *, keep: bool) -> None:
    """Measure token calls and print their breakdown.

    Installs what is missing, as `keylag setup --for demo` does; the first time takes
    minutes, and each demo about 90 seconds. Starts Keystone with MariaDB and a small
    sample cloud. Sends 100 logins and 100 token validations with JMeter: first with
    Keystone's default cache backend, which caches nothing, then with memcached. Prints
    where the time of each call went. Each run writes its results to a new folder;
    out/demo/latest links to the latest one.

    \b
    Examples:
      keylag demo
      keylag demo --keep     to explore the metrics in Prometheus
    """  # noqa: D301 - click reads a backspace
    progress = Console(stderr=form == "json")
    folder = state_folder() / "demo"
    options = demo.stack_options(next(iter(demo.RUN_CACHES)))
    set_up(TOOLS if keep else DEMO_TOOLS, progress)
    with results.folder(out, "demo") as made:
        stop_stack(folder)
        # The slow log of an earlier demo would count too.
        shutil.rmtree(folder, ignore_errors=True)
        stack = Stack(
            folder,
            Tools.load(collector=keep),
            options,
            initial_data=demo.SAMPLE_CLOUD,
            console=progress,
            services=None if keep else demo.SERVICES,
        )
        try:
            stack.up()
            runs = demo.measure(stack, made, progress)
            breakdown, report = demo.write_results(runs, made)
        except BaseException:
            stack.down()
            raise
        if not keep:
            stack.down()
    if form == "json":
        click.echo(json.dumps({"runs": runs}, indent=2))
    else:
        sql_comparison.render_table(runs, Console())
        render_terminal(runs, Console())
    progress.print(f"\n{breakdown}\n{report}", highlight=False, soft_wrap=True)
    for line in address_lines(stack) if keep else ():
        progress.print(line, highlight=False, soft_wrap=True)
    failed_requests.check_failed_share(runs, failed_requests.DEFAULT_MAX_SHARE)

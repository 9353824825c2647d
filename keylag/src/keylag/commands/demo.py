"""`keylag demo`: the main job, from nothing to a table."""

import json
import shutil
from pathlib import Path

import click
from rich.console import Console

from keylag import demo, failures, results, sql_sides
from keylag.commands.common import (
    addresses,
    out_folder_option,
    output_option,
)
from keylag.report import render_terminal
from keylag.stack import Stack
from keylag.state import state_folder
from keylag.teardown import stop_stack
from keylag.tools import Tools


@click.command("demo")
@click.option(
    "--keep",
    is_flag=True,
    help="Start Prometheus and the OpenTelemetry Collector too, leave the stack up and"
    " print its addresses; `keylag down` stops it.",
)
@out_folder_option("demo", "breakdown.json, report.html and the samples")
@output_option("What is printed at the end.")
def command(out: Path | None, form: str, *, keep: bool) -> None:
    """Measure real token calls and show where their time goes.

    Starts a Keystone of its own on MariaDB with a small cloud in it, sends 100
    logins and 100 token validations with JMeter, first with Keystone's default
    cache backend, which caches nothing, and then with memcached, and prints
    where the time of each call went. About a minute and a half. Each run has a
    folder of its own, and out/demo/latest leads to the latest.

    \b
    Examples:
      keylag demo
      keylag demo --keep     then look at Prometheus yourself
    """  # noqa: D301 - click reads a backspace
    progress = Console(stderr=form == "json")
    folder = state_folder() / "demo"
    options = demo.options_of(next(iter(demo.RUNS)))
    with results.folder(out, "demo") as made:
        stop_stack(folder)
        # What an earlier demo left in the slow log must not count.
        shutil.rmtree(folder, ignore_errors=True)
        stack = Stack(
            folder,
            Tools.load(collector=keep),
            options,
            prepared=demo.CLOUD,
            console=progress,
            services=None if keep else demo.SERVICES,
        )
        try:
            stack.up()
            runs = demo.measure(stack, made, progress)
            breakdown, report = demo.save(runs, made)
        except BaseException:
            stack.down()
            raise
        if not keep:
            stack.down()
    if form == "json":
        click.echo(json.dumps({"runs": runs}, indent=2))
    else:
        sql_sides.render(runs, Console())
        render_terminal(runs, Console())
    progress.print(f"\n{breakdown}\n{report}", highlight=False, soft_wrap=True)
    for line in addresses(stack) if keep else ():
        progress.print(line, highlight=False, soft_wrap=True)
    failures.check(runs, failures.MOST)

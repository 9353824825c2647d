"""Measure the least time of a token call, and what Keystone takes."""

import os
import time
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console

from keylag.command_errors import handle_errors
from keylag.commands.common import output_option
from keylag.paths import CHECKOUT
from keylag.state import locked, state_folder, write_output
from keylag_bench.limits.figures import Figures, analyse
from keylag_bench.limits.page import insert, to_json, to_markdown
from keylag_bench.limits.schedule import Size, measure
from keylag_bench.limits.servers import Servers

PAGE = CHECKOUT / "docs" / "limits.md"


def run(size: Size, console: Console) -> tuple[Figures, dict[str, Any]]:
    """Measure on stacks of their own; return the figures and facts about the run.

    Raises StackError or ToolError if a server fails.
    """
    started, load = time.monotonic(), os.getloadavg()[0]
    folder = state_folder() / "limits"

    def show(number: int) -> None:
        console.print(f"Restart {number + 1} of {size.restarts}", highlight=False)

    # Two benchmarks on the same processor would disturb each other.
    with locked(state_folder() / "bench.lock"), Servers(folder, console) as servers:
        restarts = measure(size, servers.restarted, show)
        parts = {name: servers.facts[name] for name in ("statements", "cached_bytes")}
    facts = {"size": size, "seconds": time.monotonic() - started, "load_before": load}
    return analyse(restarts), {**facts, **parts}


@click.command("limits", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--restarts",
    type=click.IntRange(2),
    default=6,
    show_default=True,
    help="How often all Keystones are restarted.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="Turns of every part and call in each restart.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random order.")
@click.option("--write", is_flag=True, help="Write the tables into docs/limits.md.")
@output_option()
def command(restarts: int, rounds: int, seed: int, form: str, *, write: bool) -> None:
    """Measure the least time of a token call, and what Keystone takes.

    Adds up the parts of one warm call, each measured alone, and measures Keystone with
    its defaults, with caches, without the catalog and with the patches.

    \b
    Examples:
      .venv/bin/python bench/limits.py --write
      .venv/bin/python bench/limits.py --restarts 2 --rounds 2
    """  # noqa: D301 - click reads a backspace
    with handle_errors():
        figures, facts = run(Size(restarts, rounds, seed), Console(stderr=True))
        if write:
            text = insert(PAGE.read_text(encoding="utf-8"), figures, facts)
            write_output(PAGE, text)
        if form == "json" or not write:
            render: Callable[..., str] = to_json if form == "json" else to_markdown
            click.echo(render(figures, facts))


if __name__ == "__main__":
    command()

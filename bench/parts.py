"""Measure each part of Keylag in Python and in C; a part of `make bench`.

overhead.py measures the overhead of whole calls.  This program shows where it comes
from, to keep only the C code that saves time.
"""

import json
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from keylag import results
from keylag.command_errors import handle_errors
from keylag.commands.common import out_folder_option
from keylag.launcher import StackError
from keylag.state import write_output
from keylag.tools.tool import tail
from keylag_bench.arms_and_workloads import ARMS, CACHES, COMMON
from keylag_bench.otlp_sink import open_otlp_sink
from keylag_bench.report import MIN_WIDTH
from keylag_bench.servers import Servers, open_servers

PROGRAM = Path(__file__).parent / "inside" / "part_costs.py"
CALLS = tuple(product(("GET", "POST"), ("memcache_pool", "off")))
"""All pairs of call and cache backend."""
NS_PER_US = 1000
TIMEOUT_SECONDS = 300


def measure(servers: Servers, call: str, cache: str) -> dict[str, Any]:
    """Return the time of a call, and of each part its cost and runs per call.

    Keys and units are those of bench/inside/part_costs.py.  Raises StackError with the
    end of the log if Keystone fails.
    """
    arm = ARMS["keylag_python"]
    options = {**COMMON, **CACHES[cache], **arm.environment}
    environment = {
        **servers.environment(arm.name, options),
        "KEYLAG_BENCH_PASSWORD": servers.password,
    }
    log = servers.log("parts")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as errors:
        ended = subprocess.run(
            [servers.python, PROGRAM, call],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    if ended.returncode != 0:
        message = f"Keystone ended with {ended.returncode}. {log} ends:\n{tail(log)}"
        raise StackError(message)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def saved_us(part: dict[str, float]) -> float:
    """Return the microseconds that C saves per request."""
    return part["runs"] * (part["python"] - part["c"]) / NS_PER_US


def table(title: str, found: dict[str, Any]) -> Table:
    """Return a table of all parts, those that save most first."""
    shown = Table(title=title, title_justify="left", box=None)
    columns = (
        "part",
        "runs",
        "ns in Python",
        "ns in C",
        "us saved by C",
        "of the call",
    )
    for number, column in enumerate(columns):
        shown.add_column(column, justify="right" if number else "left", no_wrap=True)
    parts, call_us = found["parts"], found["call_us"]
    saved = {name: saved_us(part) for name, part in parts.items()}
    for name in sorted(parts, key=lambda name: -saved[name]):
        figures = [f"{parts[name][column]:.0f}" for column in ("runs", "python", "c")]
        shown.add_row(name, *figures, *_saving(saved[name], call_us))
    shown.add_row("all", "", "", "", *_saving(sum(saved.values()), call_us))
    return shown


def _saving(saved: float, call_us: float) -> tuple[str, str]:
    return f"{saved:.1f}", f"{saved / call_us:.2%}"


@click.command("parts", context_settings={"help_option_names": ["-h", "--help"]})
@out_folder_option("bench/parts", "parts.json")
def command(out: Path | None) -> None:
    """Measure each part of Keylag in Python and in C.

    Counts the runs of each part per validation and per issued token, with a warm
    cache and without a cache. Times each part alone, in Python and in C. Prints
    the time that C saves, also as a share of the call with Keylag in Python.
    Takes two minutes.

    \b
    Example:
      .venv/bin/python bench/parts.py
    """  # noqa: D301 - click reads a backspace
    console = Console()
    console.width = max(console.width, MIN_WIDTH)
    with handle_errors(), results.folder(out, "bench", "parts") as made:
        with open_otlp_sink() as sink, open_servers(sink.port, console) as servers:
            found = {
                f"{call}, cache {cache}": measure(servers, call, cache)
                for call, cache in CALLS
            }
        path = made / "parts.json"
        write_output(path, json.dumps(found, indent=2))
    for title, measured in found.items():
        console.print(table(title, measured))
    console.print(f"\n{path}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    command()

"""`keylag demo`: starts a stack, sends token requests, prints breakdown and causes."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from keylag import demo, demo_fault, failed_requests, results, sql_comparison
from keylag.breakdown import Run
from keylag.commands.common import (
    address_lines,
    out_folder_option,
    output_option,
)
from keylag.commands.setup import set_up
from keylag.diagnosis.document import as_json
from keylag.diagnosis.from_run import diagnose_runs
from keylag.diagnosis.ranking import Diagnosis
from keylag.faults.model import Fault
from keylag.faults.planting import take_back_before_stop
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
@click.option(
    "--fault",
    "fault_name",
    metavar="NAME",
    help="Also plant a fault for a third run, and see the diagnosis find it: an id or"
    " name of `keylag fault list`.",
)
@out_folder_option("demo", "breakdown.json, report.html and the samples")
@output_option("Output format of the result.")
def command(fault_name: str | None, out: Path | None, form: str, *, keep: bool) -> None:
    """Measure token calls, print their breakdown and the causes of slow ones.

    Installs what is missing, as `keylag setup --for demo` does; the first time takes
    minutes, and each demo about 90 seconds. Starts Keystone with MariaDB and a small
    sample cloud. Sends 100 logins and 100 token validations with JMeter: first with
    Keystone's default cache backend, which caches nothing, then with memcached. Prints
    where the time of each call went, and the diagnosis of both runs. Each run writes
    its results to a new folder; out/demo/latest links to the latest one.

    With --fault, a third run has a planted cause, and the diagnosis of its metrics is
    printed beside it. This starts the Collector and Prometheus too.

    \b
    Examples:
      keylag demo
      keylag demo --keep     to explore the metrics in Prometheus
      keylag demo --fault cache-server-hung
    """  # noqa: D301 - click reads a backspace
    fault = demo_fault.find_fault(fault_name) if fault_name else None
    whole = keep or fault is not None
    progress = Console(stderr=form == "json")
    folder = state_folder() / "demo"
    options = demo.stack_options(next(iter(demo.RUN_CACHES)))
    set_up(TOOLS if whole else DEMO_TOOLS, progress)
    with results.folder(out, "demo") as made:
        take_back_before_stop(folder)
        stop_stack(folder)
        # The slow log of an earlier demo would count too.
        shutil.rmtree(folder, ignore_errors=True)
        stack = Stack(
            folder,
            Tools.load(collector=whole),
            options,
            initial_data=demo.SAMPLE_CLOUD,
            console=progress,
            services=None if whole else demo.SERVICES,
        )
        try:
            stack.up()
            measured = demo.measure(stack, made, progress)
            runs = [one.run for one in measured]
            diagnoses = diagnose_runs(runs)
            if fault:
                run, found = demo_fault.measure(
                    fault, stack, measured[-1].window, made, progress
                )
                runs.append(run)
                diagnoses[run["name"]] = found
            breakdown, report = demo.write_results(runs, diagnoses, made)
        except BaseException:
            stack.down()
            raise
        if not keep:
            stack.down()
    if form == "json":
        click.echo(json.dumps(_document(runs, diagnoses, fault), indent=2))
    else:
        sql_comparison.render_table(runs, Console())
        render_terminal(runs, diagnoses, Console())
        if fault:
            click.echo(f"\n{demo_fault.verdict(fault, diagnoses[fault.name])}")
    progress.print(f"\n{breakdown}\n{report}", highlight=False, soft_wrap=True)
    for line in address_lines(stack) if keep else ():
        progress.print(line, highlight=False, soft_wrap=True)
    healthy = [one.run for one in measured]
    failed_requests.check_failed_share(healthy, failed_requests.DEFAULT_MAX_SHARE)


def _document(
    runs: Sequence[Run], diagnoses: Mapping[str, Diagnosis], fault: Fault | None
) -> dict[str, Any]:
    found = {name: as_json(one) for name, one in diagnoses.items()}
    planted = {"planted": fault.key} if fault else {}
    return {"runs": runs, "diagnoses": found, **planted}

"""`keylag load`: send one load and show where the time of its calls went."""

import json
import re
import sys
from pathlib import Path

import click
from rich.console import Console

from keylag import failures, jmeter, jtl, plans, results, target
from keylag.breakdown import Run, break_down, named
from keylag.command_errors import INTERRUPTED
from keylag.commands.common import (
    out_folder_option,
    output_option,
    stack_folder_option,
)
from keylag.report import render_terminal, write_html
from keylag.sending import send
from keylag.stack_folder import StackFolder
from keylag.state import write_output
from keylag.target import Target


def _share(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Read 5% or 5 as 0.05."""
    number = text.removesuffix("%")
    if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]+)?|100", number):
        message = f"{text} is not 0% to 100%, such as 5%."
        raise click.BadParameter(message)
    return float(number) / 100


@click.command("load")
@click.argument("plan_name", metavar="PLAN")
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="A property of the plan, such as threads=4; as often as needed.",
)
@click.option("--url", help="Any Keystone, such as http://keystone:5000/v3.")
@click.option(
    "--users",
    type=click.Path(dir_okay=False, path_type=Path),
    help="CSV of the users that ask for tokens.  [default: the stack's own]",
)
@out_folder_option("load/PLAN", "samples and report")
@click.option(
    "--max-errors",
    metavar="SHARE",
    callback=_share,
    default=f"{failures.MOST:.0%}",
    show_default=True,
    help="Share of failed requests above which the command fails.",
)
@output_option()
@stack_folder_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    plan_name: str,
    settings: tuple[str, ...],
    url: str | None,
    users: Path | None,
    out: Path | None,
    max_errors: float,
    form: str,
    folder: Path,
) -> None:
    """Send a load and show where the time of its calls went.

    PLAN is token-issue, token-validate, token-mixed, service-call, or the
    path of a .jmx file. The load goes to the stack that `keylag up` started, or to the
    Keystone at --url. By default 10 virtual users start within 10 s and send
    10 requests each. Ctrl-C ends it early and shows what there is. Each run has a
    folder of its own, and out/load/PLAN/latest leads to the latest.

    \b
    Examples:
      keylag load token-issue
      keylag load token-validate --set threads=4 --set loops=100
      keylag load token-mixed --set loops=-1 --set duration_seconds=60
      keylag load service-call          needs `keylag up --with service`

    Against another Keystone, the service user comes from the variables of an
    openrc file (OS_USERNAME, OS_PASSWORD, ...), never from the command line:

    \b
      source openrc
      keylag load token-validate --url https://cloud:5000/v3 --users users.csv

    The properties of a plan, with the range of each, are in
    jmeter-plans/README.md; times are plain numbers of their unit. Keystone
    has to run with keylag_otel and KEYLAG_SERVER_TIMING=true for more than
    the client's latency.
    """  # noqa: D301 - click reads a backspace
    plan = plans.find(plan_name)
    chosen = properties(settings)
    plan.check(chosen)
    where = _target(url, users, folder)
    with results.folder(out, "load", plan.name) as made:
        result = send(plan, where, chosen, made, Console(stderr=True))
        if result.interrupted and not result.samples.exists():
            raise KeyboardInterrupt
        run = _saved(plan, where, chosen, result, made)
    _show(run, form)
    click.echo(f"Samples and report: {made}", err=True)
    if result.interrupted:
        sys.exit(INTERRUPTED)
    failures.check([run], max_errors)


def _target(url: str | None, users: Path | None, folder: Path) -> Target:
    if url:
        return target.of_url(url, users)
    return target.of_stack(StackFolder(folder), users)


def properties(settings: tuple[str, ...]) -> dict[str, str]:
    """Split NAME=VALUE words; raises UsageError for another form, or a secret."""
    pairs = [word.partition("=") for word in settings]
    for name, equals, _ in pairs:
        if not (name and equals):
            message = f"--set {name} is not of the form NAME=VALUE."
            raise click.UsageError(message)
        if name in plans.SECRET:
            message = (
                f"{name} does not belong on a command line, where others can read it. "
                f"Set the variable {target.FROM_OPENRC[name]}."
            )
            raise click.UsageError(message)
        if name == "users_file":
            message = "The file of users is given by --users FILE."
            raise click.UsageError(message)
    return {name: value for name, _, value in pairs}


def _saved(
    plan: plans.Plan,
    where: Target,
    chosen: dict[str, str],
    result: jmeter.Result,
    out: Path,
) -> Run:
    """Break the samples down and leave the result beside them."""
    samples, notes = jtl.read(result.samples)
    environment = {**plan.environment(chosen), **where.environment}
    run = named(plan.name, break_down(samples, environment, notes))
    text = json.dumps({"runs": [run]}, indent=2)
    write_output(out / "breakdown.json", text + "\n")
    write_html([run], out / "report.html")
    return run


def _show(run: Run, form: str) -> None:
    if form == "json":
        click.echo(json.dumps(run, indent=2))
    else:
        render_terminal([run], Console())

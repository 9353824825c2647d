"""`keylag load`: sends one load and prints the breakdown of its calls."""

import json
import re
import sys
from pathlib import Path

import click
from rich.console import Console

from keylag import (
    engine_facts,
    failed_requests,
    jmeter,
    jtl,
    load_plans,
    load_target,
    results,
)
from keylag.breakdown import Run, compute_breakdown, name_run
from keylag.command_errors import INTERRUPTED
from keylag.commands.common import (
    access_options,
    find_access,
    out_folder_option,
    output_option,
    state_option,
)
from keylag.diagnosis.from_run import diagnose_runs
from keylag.jmeter_run import RemoteRun
from keylag.load_runner import jmeter_home, send_load
from keylag.load_target import LoadTarget
from keylag.remote_engines import EngineError, parse_engines, require_reachable
from keylag.report import render_terminal, write_html
from keylag.stack_info import StackInfo
from keylag.state import write_output


def _parse_share(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Parse 5% or 5 as 0.05."""
    number = text.removesuffix("%")
    if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]+)?|100", number):
        message = f"{text} is not a percentage from 0% to 100%, such as 5%."
        raise click.BadParameter(message)
    return float(number) / 100


@click.command("load")
@click.argument("plan_name", metavar="PLAN")
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Set a property of the plan, such as threads=4; repeatable.",
)
@click.option(
    "--url",
    help="URL of a Keystone, such as http://keystone:5000/v3.  [default: the stack's]",
)
@click.option(
    "--users",
    type=click.Path(dir_okay=False, path_type=Path),
    help="CSV file of the users for whom tokens are requested.  [default: the stack's]",
)
@out_folder_option("load/PLAN", "the samples and the report")
@click.option(
    "--max-errors",
    metavar="SHARE",
    callback=_parse_share,
    default=f"{failed_requests.DEFAULT_MAX_SHARE:.0%}",
    show_default=True,
    help="Highest share of failed requests; above it, the exit code is 1.",
)
@click.option(
    "--remote",
    metavar="HOST[:PORT],...",
    help="Engines that send the load, each the whole plan: see `keylag engine`.",
)
@access_options
@click.option(
    "--callback",
    metavar="HOST",
    default="",
    help="Address of this machine for the engines.  [default: chosen by the route]",
)
@click.option("--stop-engines", is_flag=True, help="End the engines after the load.")
@output_option()
@state_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    plan_name: str,
    settings: tuple[str, ...],
    url: str | None,
    users: Path | None,
    out: Path | None,
    max_errors: float,
    remote: str | None,
    keystore: Path,
    tls: bool,  # noqa: FBT001 - click passes it by name
    callback: str,
    stop_engines: bool,  # noqa: FBT001 - click passes it by name
    form: str,
    folder: Path,
) -> None:
    """Send a load, print the breakdown of its calls and the causes of slow ones.

    PLAN is token-issue, token-validate, token-mixed, service-call, object-storage, or
    the path of a .jmx file. The load goes to the stack that `keylag up` started, or to
    the Keystone at --url. By default 10 virtual users start within 10 s and send 10
    requests each. Ctrl-C stops the load and prints the results so far. Each run writes
    its results to a new folder; out/load/PLAN/latest links to the latest one.

    \b
    Examples:
      keylag load token-issue
      keylag load token-validate --set threads=4 --set loops=100
      keylag load token-mixed --set loops=-1 --set duration_seconds=60
      keylag load service-call          requires `keylag up --with service`

    For another Keystone, the variables of an openrc file, such as OS_USERNAME and
    OS_PASSWORD, name the service user. Passwords never belong on the command line:

    \b
      source openrc
      keylag load token-validate --url https://cloud:5000/v3 --users users.csv

    Engines on other machines send more than one machine can. They have the users and
    the passwords; docs/how-to/run-load-from-several-machines.md describes them:

    \b
      keylag load token-issue --url https://cloud:5000/v3 --remote load1,load2

    jmeter-plans/README.md lists the properties of the plans and their ranges; times
    are numbers without a unit. The breakdown requires a Keystone with keylag-otel and
    KEYLAG_SERVER_TIMING=true; without it, the results have only the client's latency.
    """  # noqa: D301 - click reads a backspace
    plan = load_plans.find_plan(plan_name)
    chosen = parse_settings(settings)
    plan.validate(chosen)
    sender = None
    if remote:
        _reject_engine_properties(users, chosen)
        engines = parse_engines(remote)
        target = load_target.for_engines(_target_of_engines(url, folder), engines)
        access = find_access(keystore, tls=tls)
        require_reachable(engines)
        sender = RemoteRun(engines, access, jmeter_home(), callback, stop_engines)
    elif callback or stop_engines or not tls:
        message = "--callback, --no-tls and --stop-engines need --remote."
        raise click.UsageError(message)
    else:
        target = _target(url, users, folder)
    with results.folder(out, "load", plan.name) as made:
        result = send_load(
            plan, target, chosen, made, Console(stderr=True), sender=sender
        )
        if result.interrupted and not _has_samples(result):
            raise KeyboardInterrupt
        if result.failure and not _has_samples(result):
            raise EngineError(result.failure)
        run = _write_results(plan, target, chosen, result, made, sender)
    _print_run(run, form)
    click.echo(f"Samples and report: {made}", err=True)
    if result.failure:
        raise EngineError(result.failure)
    if result.interrupted:
        sys.exit(INTERRUPTED)
    failed_requests.check_failed_share([run], max_errors)


def _target(url: str | None, users: Path | None, folder: Path) -> LoadTarget:
    if url:
        return load_target.from_url(url, users)
    return load_target.from_stack(StackInfo(folder), users)


def _target_of_engines(url: str | None, folder: Path) -> LoadTarget:
    if url:
        return LoadTarget(load_target.split_url(url))
    return load_target.from_stack(StackInfo(folder), alternative="give --url")


def _reject_engine_properties(users: Path | None, chosen: dict[str, str]) -> None:
    own = [name for name in load_target.ENGINE_PROPERTIES if name in chosen]
    wrong = ["--users"] if users else [f"--set {name}" for name in own]
    if wrong:
        message = (
            f"{wrong[0]} has no effect with --remote: each engine has its own users "
            "and service user. Start it with `keylag engine --users FILE` and the OS_* "
            "variables of an openrc file."
        )
        raise click.UsageError(message)


def parse_settings(settings: tuple[str, ...]) -> dict[str, str]:
    """Parse NAME=VALUE settings; raises click.UsageError for invalid ones."""
    pairs = [setting.partition("=") for setting in settings]
    for name, equals, _ in pairs:
        if not (name and equals):
            message = f"--set {name} does not have the form NAME=VALUE."
            raise click.UsageError(message)
        if name in load_plans.SECRET_PROPERTIES:
            message = (
                f"{name} does not belong on the command line, where others can read "
                f"it. Set {load_target.OPENRC_VARIABLES[name]} in the environment."
            )
            raise click.UsageError(message)
        if name == "users_file":
            message = "Name the file of users with --users FILE."
            raise click.UsageError(message)
    return {name: value for name, _, value in pairs}


def _has_samples(result: jmeter.LoadResult) -> bool:
    return result.samples.exists() and result.samples.stat().st_size > 0


def _write_results(  # noqa: PLR0913, PLR0917 - one for each part of a run
    plan: load_plans.LoadPlan,
    target: LoadTarget,
    chosen: dict[str, str],
    result: jmeter.LoadResult,
    out: Path,
    sender: RemoteRun | None,
) -> Run:
    samples, warnings = jtl.read_samples(result.samples)
    engines = sender.engines if sender else ()
    if sender:
        warnings += engine_facts.clock_warnings(samples, engines, sender.log)
    facts = plan.environment_facts(chosen, len(engines) or 1)
    environment = {**facts, **target.environment}
    run = name_run(plan.name, compute_breakdown(samples, environment, warnings))
    text = json.dumps({"runs": [run]}, indent=2)
    write_output(out / "breakdown.json", text + "\n")
    write_html([run], diagnose_runs([run]), out / "report.html")
    for line in engine_facts.count_lines(samples, engines):
        click.echo(line, err=True)
    return run


def _print_run(run: Run, form: str) -> None:
    if form == "json":
        click.echo(json.dumps(run, indent=2))
    else:
        render_terminal([run], diagnose_runs([run]), Console())

"""`keylag diagnose`: why token calls are slow, and what to change."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

import click
from rich.console import Console

from keylag.commands.common import (
    TimeParam,
    out_folder_option,
    output_option,
    state_option,
)
from keylag.commands.diagnose_metrics import Metrics, parse_matcher, parse_window
from keylag.commands.diagnose_output import FORMS, Output
from keylag.commands.diagnose_records import Records, record_options
from keylag.diagnosis.configuration import read_configuration
from keylag.diagnosis.explanation import explain
from keylag.diagnosis.html import Report
from keylag.diagnosis.prometheus import Prometheus, PrometheusError
from keylag.diagnosis.ranking import Diagnosis
from keylag.diagnosis.registry import find_rule
from keylag.diagnosis.rule import Rule
from keylag.diagnosis.serving import serve
from keylag.stack_info import StackInfo

FINDINGS: Final = 1
CANNOT_SAY: Final = 2


@click.command("diagnose")
@click.option(
    "--prometheus",
    "url",
    help="URL of a Prometheus.  [default: that of the stack]",
)
@click.option(
    "--since",
    "--from",
    "start",
    type=TimeParam(),
    default="15m",
    show_default=True,
    help="Start of the window: an age such as 5m, or a time.",
)
@click.option("--to", "end", type=TimeParam(), help="End.  [default: now]")
@click.option(
    "--baseline",
    type=TimeParam(),
    help="End of the baseline, a window of the same length: 1d, or a time.  [default: "
    "a day or a week ago, else the shipped figures of a healthy Keystone]",
)
@click.option(
    "--match",
    "matchers",
    multiple=True,
    metavar="LABEL=VALUE",
    help="Only series with this label, such as cluster=one; repeatable.",
)
@record_options
@click.option(
    "--config",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Keystone's configuration, such as keystone.conf: its values are shown beside "
    "the lines to change, and judged; repeatable.",
)
@click.option(
    "--config-dir",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with more of it: its files *.conf, in the order of their names.",
)
@click.option(
    "--explain",
    "rule_id",
    metavar="ID",
    help="Explain a cause, such as C2, instead of looking for causes.",
)
@click.option(
    "--verify",
    "verified_id",
    metavar="ID",
    help="Run the experiment of a finding on the stack: as it is, and with the fix.",
)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Serve what each cause costs as metrics, until Ctrl-C.",
)
@click.option(
    "--grafana", help="URL of Grafana, for the links.  [default: that of the stack]"
)
@click.option(
    "--promql",
    is_flag=True,
    help="Print the query of each number, too; `json` and `html` always have it.",
)
@output_option(forms=tuple(FORMS))
@out_folder_option("diagnose", "the page of `--output html`")
@state_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    url: str | None,
    start: float,
    end: float | None,
    baseline: float | None,
    matchers: tuple[str, ...],
    run: Path | None,
    header: str | None,
    trace: str | None,
    store: str | None,
    call: str | None,
    files: tuple[Path, ...],
    folders: tuple[Path, ...],
    rule_id: str | None,
    verified_id: str | None,
    listen: str | None,
    grafana: str | None,
    promql: bool,  # noqa: FBT001
    form: str,
    out: Path | None,
    folder: Path,
) -> None:
    """Name the causes of slow token calls, the most expensive first.

    Reads the metrics of Keystone and of the exporters from a Prometheus, and prints
    for each cause what it costs, the evidence, the lines to change with their risk,
    and what that would save.

    --verify also measures what the fix of a finding saves, in about ten minutes. It
    switches the stack between both states: it takes a planted fault back and plants it
    again, or restarts Keystone with other options. Afterwards, and after Ctrl-C, the
    stack is as it was. Stop other loads before: it sends its own.

    \b
    Exit codes: 0 healthy, 1 causes were found, 2 too little is known,
    or calls are slow for a reason that no cause explains.
    With --verify: 0 the prediction agrees, 1 it does not, 2 it cannot tell.

    \b
    Examples:
      keylag diagnose --since 5m
      keylag diagnose --prometheus http://prometheus:9090 --match cluster=one
      keylag diagnose --output json
      keylag diagnose --output html
      keylag diagnose --config /etc/keystone/keystone.conf
      keylag diagnose --run out/demo/latest
      keylag diagnose --trace trace.json
      curl -si ... | keylag diagnose --server-timing -
      keylag diagnose --explain C2
      keylag diagnose --since 2m --verify C4
      keylag diagnose --since 5m --listen 127.0.0.1:9730
    """  # noqa: D301 - click reads a backspace
    if rule_id is not None:
        click.echo(explain(find_rule(rule_id)))
        return
    if out is not None and form != "html":
        message = "--out is the folder of a page: it needs --output html."
        raise click.UsageError(message)
    records = Records(run, header, trace, store, call)
    if verified_id is not None and (url or listen or records.given or form == "html"):
        message = (
            "--verify measures the stack of `keylag up`: leave out --prometheus, "
            "--listen, --run, --trace and --server-timing, and --output html."
        )
        raise click.UsageError(message)
    _refuse_fixed_times(listen, end, baseline)
    configuration = read_configuration(files, folders)
    if reports := records.reports(folder, configuration):
        _show(Output(form, grafana or "", out, promql), reports)
        return
    verified = None if verified_id is None else find_rule(verified_id)
    server = Prometheus(url or _stack_url(folder))
    metrics = Metrics(server, ", ".join(map(parse_matcher, matchers)), configuration)
    window = parse_window(start, end or time.time())
    if listen is not None:
        _serve(listen, lambda: metrics.judge_latest(window.seconds))
        return
    try:
        diagnosis = metrics.judge(window, baseline)
    except PrometheusError as error:
        click.echo(f"Error: {error}", err=True)
        raise click.exceptions.Exit(CANNOT_SAY) from error
    output = Output(form, _grafana(grafana, url, folder), out, promql)
    if not diagnosis.facts.calls and not diagnosis.findings:
        message = (
            "No token call ended in this window, so Prometheus does not tell. "
            "Send some, or choose another window with --since or --from and --to."
        )
        click.echo(message, err=True)
        if form == "json":
            output.show([metrics.report(diagnosis, charts=False)])
        raise click.exceptions.Exit(CANNOT_SAY)
    if verified is not None:
        _verify(diagnosis, verified, folder, form)
    _show(output, [metrics.report(diagnosis, charts=form == "html")])


def _verify(diagnosis: Diagnosis, rule: Rule, folder: Path, form: str) -> NoReturn:
    """Verify a finding, print the result, and end with its exit code."""
    # It imports all of `keylag experiment`, which takes longer than a diagnosis.
    from keylag.diagnosis import verification  # noqa: PLC0415

    found = verification.verify(diagnosis, rule, StackInfo(folder))
    if form == "json":
        click.echo(json.dumps(verification.as_json(found), indent=2))
    else:
        verification.render(found, Console())
    raise click.exceptions.Exit(verification.EXIT_CODES[found.verdict])


def _show(output: Output, reports: Sequence[Report]) -> None:
    """Show the diagnoses, and end with their exit code."""
    output.show(reports)
    if any(one.diagnosis.findings for one in reports):
        raise click.exceptions.Exit(FINDINGS)
    if not any(one.diagnosis.facts.calls for one in reports):
        click.echo("There is no token call to judge.", err=True)
        raise click.exceptions.Exit(CANNOT_SAY)
    if any(one.diagnosis.is_open for one in reports):
        raise click.exceptions.Exit(CANNOT_SAY)


def _stack_url(folder: Path) -> str:
    stack = StackInfo(folder)
    stack.require_keystone("give --prometheus")
    return stack.url("prometheus")


def _grafana(given: str | None, prometheus: str | None, folder: Path) -> str:
    """Return the URL of Grafana; empty if there is none."""
    if given is not None or prometheus is not None:
        return given or ""
    stack = StackInfo(folder)
    return stack.url("grafana") if "grafana" in stack.ports else ""


def _refuse_fixed_times(listen: str | None, *times: float | None) -> None:
    if listen is not None and any(one is not None for one in times):
        message = "--listen judges the time until now: leave out --to and --baseline."
        raise click.UsageError(message)


def _serve(listen: str, latest: Callable[[], Diagnosis]) -> None:
    host, _, port = listen.rpartition(":")
    if not (host and port.isdigit()):
        message = f"{listen} is no address: write 127.0.0.1:9730."
        raise click.UsageError(message)
    click.echo(f"Serving http://{host}:{serve(latest, host, int(port))}/metrics.")
    threading.Event().wait()

"""`keylag diagnose`: why token calls are slow, and what to change."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from keylag.commands.common import TimeParam, output_option, state_option
from keylag.diagnosis.case import Case
from keylag.diagnosis.document import as_json
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.explanation import explain
from keylag.diagnosis.facts import Facts, Window
from keylag.diagnosis.from_run import read_runs
from keylag.diagnosis.prometheus import Prometheus
from keylag.diagnosis.ranking import Diagnosis, diagnose
from keylag.diagnosis.reading import read_calls, read_facts
from keylag.diagnosis.registry import find_rule
from keylag.diagnosis.serving import serve
from keylag.diagnosis.terminal import render
from keylag.stack_info import StackInfo

FINDINGS: Final = 1
CANNOT_SAY: Final = 2
DAY_SECONDS: Final = 86400.0
EARLIER: Final = (DAY_SECONDS, 7 * DAY_SECONDS)
"""How long before the window its baseline is; the first with calls is used."""


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
@click.option(
    "--run",
    "run_folder",
    type=click.Path(exists=True, path_type=Path),
    help="Folder that `keylag load` or `keylag demo` left, instead of a Prometheus.",
)
@click.option(
    "--explain",
    "rule_id",
    metavar="ID",
    help="Explain a cause, such as C2, instead of looking for causes.",
)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Serve what each cause costs as metrics, until Ctrl-C.",
)
@click.option("--grafana", default="", help="URL of Grafana, for the links.")
@output_option()
@state_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    url: str | None,
    start: float,
    end: float | None,
    baseline: float | None,
    matchers: tuple[str, ...],
    run_folder: Path | None,
    rule_id: str | None,
    listen: str | None,
    grafana: str,
    form: str,
    folder: Path,
) -> None:
    """Name the causes of slow token calls, the most expensive first.

    Reads the metrics of Keystone and of the exporters from a Prometheus, and prints
    for each cause what it costs, the evidence, the lines to change with their risk,
    and what that would save.

    \b
    Exit codes: 0 healthy, 1 causes were found, 2 too little is known.

    \b
    Examples:
      keylag diagnose --since 5m
      keylag diagnose --prometheus http://prometheus:9090 --match cluster=one
      keylag diagnose --output json
      keylag diagnose --run out/demo/latest
      keylag diagnose --explain C2
      keylag diagnose --since 5m --listen 127.0.0.1:9730
    """  # noqa: D301 - click reads a backspace
    if rule_id is not None:
        click.echo(explain(find_rule(rule_id)))
        return
    if run_folder is not None:
        _end(_diagnose_runs(run_folder, form))
        return
    server = Prometheus(url or _stack_url(folder))
    window = _window(start, end or time.time())
    selected = ", ".join(map(_matcher, matchers))
    if listen is not None:
        _serve(listen, lambda: _latest(server, window.seconds, selected))
        return
    diagnosis = _diagnose(server, window, selected, baseline)
    if not diagnosis.facts.calls and diagnosis.is_healthy:
        message = (
            f"No token call ended in this window, so {server.url} does not tell. "
            "Send some, or choose another window with --since or --from and --to."
        )
        click.echo(message, err=True)
        raise click.exceptions.Exit(CANNOT_SAY)
    if form == "json":
        click.echo(json.dumps(as_json(diagnosis, grafana), indent=2))
    else:
        render(diagnosis, Console(), grafana)
    _end([diagnosis])


def _end(diagnoses: Sequence[Diagnosis]) -> None:
    """End with the exit code of the diagnoses."""
    if any(one.findings for one in diagnoses):
        raise click.exceptions.Exit(FINDINGS)


def _diagnose_runs(folder: Path, form: str) -> list[Diagnosis]:
    """Print the diagnosis of each run of a folder."""
    runs = read_runs(folder)
    found = {
        name: diagnose(Case(facts, Expected.shipped(facts)))
        for name, facts in runs.items()
    }
    if form == "json":
        documents = {name: as_json(one) for name, one in found.items()}
        click.echo(json.dumps({"runs": documents}, indent=2))
    else:
        console = Console()
        for name, one in found.items():
            console.rule(name)
            render(one, console)
    return list(found.values())


def _stack_url(folder: Path) -> str:
    stack = StackInfo(folder)
    stack.require_keystone("give --prometheus")
    return stack.url("prometheus")


def _matcher(text: str) -> str:
    """Return PromQL for LABEL=VALUE."""
    label, separator, value = text.partition("=")
    if not (separator and label.isidentifier()):
        message = f"--match {text} is not LABEL=VALUE, such as cluster=one."
        raise click.UsageError(message)
    return f"{label}={json.dumps(value, ensure_ascii=False)}"


def _serve(listen: str, latest: Callable[[], Diagnosis]) -> None:
    host, _, port = listen.rpartition(":")
    if not (host and port.isdigit()):
        message = f"{listen} is no address: write 127.0.0.1:9730."
        raise click.UsageError(message)
    click.echo(f"Serving http://{host}:{serve(latest, host, int(port))}/metrics.")
    threading.Event().wait()


def _latest(server: Prometheus, seconds: float, selected: str) -> Diagnosis:
    """Return the diagnosis of a window that ends now."""
    end = time.time()
    return _diagnose(server, Window(end - seconds, end), selected, None)


def _diagnose(
    server: Prometheus, window: Window, selected: str, baseline: float | None
) -> Diagnosis:
    facts = read_facts(server, window, selected)
    return diagnose(Case(facts, _expected(server, facts, baseline, selected)))


def _window(start: float, end: float) -> Window:
    if start >= end:
        message = "The window ends before it starts: check --from and --to."
        raise click.UsageError(message)
    return Window(start, end)


def _expected(
    server: Prometheus, facts: Facts, baseline: float | None, selected: str
) -> Expected:
    window = facts.window
    ends = (baseline,) if baseline else [window.end - offset for offset in EARLIER]
    for end in ends:
        before = Window(end - window.seconds, end)
        found = read_calls(server, before, selected)
        if found.calls:
            return Expected.of(found)
    return Expected.shipped(facts)

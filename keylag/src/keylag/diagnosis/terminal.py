"""A diagnosis for the terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from keylag.diagnosis import wording
from keylag.diagnosis.common import name_kind
from keylag.diagnosis.document import dashboard_url, missing_sources
from keylag.diagnosis.promql import evidence_query
from keylag.diagnosis.ranking import Diagnosis, Finding
from keylag.diagnosis.rule import Rule


def render(
    diagnosis: Diagnosis, console: Console, grafana: str = "", *, promql: bool = False
) -> None:
    """Print the findings, each with evidence, fix and gain.

    `promql` adds the query of each number.
    """
    console.print(_calls(diagnosis))
    for sentence in diagnosis.facts.limitations:
        console.print(Text(sentence, "yellow"), soft_wrap=True)
    if diagnosis.is_healthy:
        console.print(Text(f"\n{wording.no_cause(diagnosis)}", "bold"))
    for rank, finding in enumerate(diagnosis.findings, start=1):
        console.print()
        render_finding(diagnosis, finding, rank, console, grafana)
        if promql:
            _queries(diagnosis, finding, console)
    for sentence in wording.open_questions(diagnosis):
        console.print(Text(f"\n{sentence}", "bold yellow"))
    if diagnosis.unknown:
        console.print("\nNot judged:")
    for name, install, ids in missing_sources(diagnosis):
        line = f"  {', '.join(ids)}: no {name}; it needs {install}."
        console.print(Text(line, "yellow"), soft_wrap=True)


def _calls(diagnosis: Diagnosis) -> Table:
    title = wording.calls_title(diagnosis.facts)
    table = Table(title=title, title_justify="left")
    for heading in ("call", "calls/s", "mean", "p50", "p95"):
        table.add_column(heading, justify="left" if heading == "call" else "right")
    for one in diagnosis.facts.calls:
        quantiles = [one.quantile(0.5), one.quantile(0.95)]
        table.add_row(
            wording.name_calls(one),
            f"{one.per_second:.2f}",
            wording.format_number(one.seconds, "s"),
            *("-" if x is None else wording.format_number(x, "s") for x in quantiles),
        )
    return table


def render_finding(
    diagnosis: Diagnosis, finding: Finding, rank: int, console: Console, grafana: str
) -> None:
    """Print a finding, with its number."""
    rule = finding.rule
    console.print(Text(f"{rank}. {finding.cause} ({rule.id} {rule.name})", "bold red"))
    costs = ", ".join(wording.cost_texts(diagnosis, finding))
    _line(console, f"It costs {finding.cost:.2f} s/s: {costs}.")
    for text in wording.caller_texts(diagnosis, finding):
        _line(console, text)
    grid = Table.grid(padding=(0, 2))
    for one in finding.suspicion.evidence:
        value, expected = wording.evidence_value(one), wording.evidence_expected(one)
        grid.add_row("  ", escape(one.text), value, expected)
    console.print(grid)
    for kind, saving in finding.suspicion.savings.items():
        saved = wording.format_saving(saving)
        _line(console, f"Without it, {name_kind(kind)} saves {saved}.")
    _fixes(diagnosis, rule, console)
    for reason in finding.explained:
        _line(console, f"Explained away: {wording.name_reason(reason)}")
    _line(console, f"Runner-up: {wording.runner_up(diagnosis, finding)}")
    if wording.has_time(diagnosis.facts):
        _line(console, f"See {dashboard_url(rule, diagnosis, grafana)}")


def _queries(diagnosis: Diagnosis, finding: Finding, console: Console) -> None:
    for one in finding.suspicion.evidence:
        if query := evidence_query(one, diagnosis.facts):
            _line(console, f"PromQL of {one.text}: {query}")


def _line(console: Console, text: str) -> None:
    console.print(Text(f"   {text}"), soft_wrap=True)


def _fixes(diagnosis: Diagnosis, rule: Rule, console: Console) -> None:
    for fix in rule.fixes:
        console.print(
            Text(f"   Change {fix.file}: ").append(fix.line, "bold"), soft_wrap=True
        )
        if now := wording.present(diagnosis, fix):
            _line(console, f"   {now}")
        _line(console, f"   Risk: {fix.risk}")

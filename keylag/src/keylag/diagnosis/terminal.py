"""A diagnosis for the terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from keylag.diagnosis.common import name_kind
from keylag.diagnosis.document import dashboard_url, missing_sources
from keylag.diagnosis.ranking import Diagnosis, Finding
from keylag.diagnosis.rule import Evidence, Rule

SECONDS = ("s", "s/s")


def render(diagnosis: Diagnosis, console: Console, grafana: str = "") -> None:
    """Print the findings, each with evidence, fix and gain."""
    console.print(_calls(diagnosis))
    if diagnosis.is_healthy:
        console.print(
            Text("\nNo cause found: nothing costs a sixth of a call.", "bold")
        )
    for rank, finding in enumerate(diagnosis.findings, start=1):
        console.print()
        _finding(diagnosis, finding, rank, console, grafana)
    if diagnosis.unknown:
        console.print("\nNot judged:")
    for name, install, ids in missing_sources(diagnosis):
        line = f"  {', '.join(ids)}: no {name}; it needs {install}."
        console.print(Text(line, "yellow"), soft_wrap=True)


def _calls(diagnosis: Diagnosis) -> Table:
    window = diagnosis.facts.window
    title = f"Token calls of {window.seconds / 60:.3g} minutes"
    table = Table(title=title, title_justify="left")
    for heading in ("call", "calls/s", "mean", "p50", "p95"):
        table.add_column(heading, justify="left" if heading == "call" else "right")
    for one in diagnosis.facts.calls:
        name = name_kind(one.kind) + (" (refused)" if one.refused else "")
        quantiles = [one.quantile(0.5), one.quantile(0.95)]
        table.add_row(
            name,
            f"{one.per_second:.2f}",
            format_number(one.seconds, "s"),
            *("-" if x is None else format_number(x, "s") for x in quantiles),
        )
    return table


def _finding(
    diagnosis: Diagnosis, finding: Finding, rank: int, console: Console, grafana: str
) -> None:
    rule = finding.rule
    console.print(Text(f"{rank}. {rule.cause} ({rule.id} {rule.name})", "bold red"))
    shares = [
        f"{share:.0%} of {name_kind(kind)}"
        for kind, share in finding.shares.items()
        if share >= 0.01  # noqa: PLR2004 - less is not worth a word
    ]
    console.print(f"   It costs {finding.cost:.2f} s/s: {', '.join(shares)}.")
    grid = Table.grid(padding=(0, 2))
    for one in finding.suspicion.evidence:
        grid.add_row("  ", escape(one.text), _value(one), _before(one))
    console.print(grid)
    for kind, saving in finding.suspicion.savings.items():
        low, mid, high = (
            format_number(x, "s") for x in (saving.low, saving.mid, saving.high)
        )
        console.print(
            f"   Without it, {name_kind(kind)} saves {mid} ({low} to {high}).",
            highlight=False,
        )
    _fixes(rule, console)
    if finding.explained:
        ids = ", ".join(f"{one.rule.id} {one.rule.name}" for one in finding.explained)
        console.print(f"   It explains {ids}.")
    if diagnosis.facts.window.start:
        url = dashboard_url(rule, diagnosis, grafana)
        console.print(f"   See {url}", soft_wrap=True, highlight=False)


def _fixes(rule: Rule, console: Console) -> None:
    for fix in rule.fixes:
        console.print(
            Text(f"   Change {fix.file}: ").append(fix.line, "bold"), soft_wrap=True
        )
        console.print(Text(f"      Risk: {fix.risk}"), soft_wrap=True)


def _value(one: Evidence) -> str:
    return format_number(one.value, one.unit)


def _before(one: Evidence) -> str:
    if one.baseline is None:
        return ""
    return f"expected {format_number(one.baseline, one.unit)}"


def format_number(value: float, unit: str) -> str:
    """Format a number with its unit, with three significant digits."""
    if unit == "s":
        return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
    if unit.startswith("of "):
        return f"{value:.0%} {unit}"
    return f"{value:.3g} {unit}".rstrip()

"""The tables in the terminal: the client's latency, and where the time went."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keylag.advice import conclusion, may_help, sentence, title
from keylag.breakdown import Run
from keylag.phases import CATEGORY_NAMES
from keylag.report.rows import (
    CLIENT,
    Shown,
    by_call,
    count,
    digits_for,
    ms,
    per_cent,
    total,
    value,
)


def render_terminal(runs: Sequence[Run], console: Console) -> None:
    """Print the latency table, a break-down for each call, and what it means."""
    shown = [group for group in by_call(runs) if group]
    console.print(_latency(shown))
    for group in shown:
        console.print()
        console.print(_breakdown(group))
        for one in group:
            _say(one, console)
    console.print()
    console.print(Text(conclusion(runs), "bold"))
    for run in runs:
        for warning in run["warnings"]:
            console.print(Text(f"{run['name']}: {warning}", "yellow"))


def _say(one: Shown, console: Console) -> None:
    """Print the facts of a call, and the options below them."""
    known = one.run["environment"]
    words = sentence(one.call, known)
    console.print(Text.assemble((f"{one.run['name']}: ", "bold"), words))
    if texts := may_help(one.call, known):
        console.print("What may help:")
        options = Table.grid(padding=(0, 1))
        for text in texts:
            options.add_row("-", Text(text))
        console.print(options)


def _latency(groups: Sequence[Sequence[Shown]]) -> Table:
    table = Table(title="Latency at the client, ms", title_justify="left")
    table.add_column("call, run")
    for name in ("requests", *CLIENT, "errors"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in groups:
        table.add_row(title(group[0].call), style="bold")
        for one in group:
            table.add_row(
                f"  {one.run['name']}",
                str(one.call["requests"]),
                *(ms(value(one.call["client_seconds"], name)) for name in CLIENT),
                str(one.call["errors"]),
            )
        table.add_section()
    return table


def _breakdown(group: Sequence[Shown]) -> Table:
    name = f"{title(group[0].call)}: Keystone's time, mean of a request"
    table = Table(title=name, title_justify="left", show_footer=False)
    table.add_column("")
    for one in group:
        table.add_column(f"{one.run['name']} ms", justify="right")
        table.add_column("share", justify="right")
    for category, words in CATEGORY_NAMES.items():
        table.add_row(words, *(text for one in group for text in _part(one, category)))
    table.add_section()
    table.add_row("sum", *(text for one in group for text in _sum(one)))
    table.add_row("wall time", *(text for one in group for text in _wall(one)))
    table.add_section()
    table.add_row("SQL statements", *_counts(group, "sql_statements"))
    table.add_row("cache calls", *_counts(group, "cache_calls"))
    return table


def _digits(one: Shown) -> int:
    return digits_for(value(one.call["wall_seconds"], "mean") or 0.0)


def _part(one: Shown, category: str) -> tuple[str, str]:
    numbers = one.call["categories"].get(category)
    mean = ms(value(numbers, "mean"), _digits(one))
    return mean, per_cent(value(numbers, "share"))


def _sum(one: Shown) -> tuple[str, str]:
    categories = one.call["categories"]
    return ms(total(categories, "mean"), _digits(one)), per_cent(
        total(categories, "share")
    )


def _wall(one: Shown) -> tuple[str, str]:
    return ms(value(one.call["wall_seconds"], "mean"), _digits(one)), ""


def _counts(group: Sequence[Shown], name: str) -> list[str]:
    numbers = [one.call[name] for one in group]  # type: ignore[literal-required]
    return [text for found in numbers for text in (count(value(found, "mean")), "")]

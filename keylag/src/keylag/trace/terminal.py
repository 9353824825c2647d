"""An explanation in the terminal: bars, a tree, and tables of statements."""

from collections.abc import Iterable, Mapping
from typing import Final

from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keylag.phases import CATEGORY_NAMES
from keylag.report.rows import ms, per_cent
from keylag.trace.exchange import PARTS, Exchange
from keylag.trace.explanation import Counted, Explanation
from keylag.trace.rows import rows, shortened

BAR: Final = 24
"""Columns of a bar that is the whole call."""
WIDE: Final = 100
"""From so many columns on there is room for such a bar beside the tree."""
NARROW_BAR: Final = 8
SHOWN: Final = 5
"""Classes of statements that are listed; the page and the JSON have all."""
LEAST: Final = 0.01
"""Share of the call that a span needs to have a line."""
DIGITS: Final = 2
JOINS: Final = {0: "no join", 1: "one", 2: "two", 3: "three or more"}


def render(found: Explanation, console: Console) -> None:
    """Print all there is to say of a call."""
    title = f"{found.call}: {ms(found.total_seconds, DIGITS)} ms"
    console.print(Text.assemble((title, "bold"), f"  ({found.source})"))
    categories = {
        CATEGORY_NAMES[name]: spent for name, spent in found.categories.items()
    }
    console.print(_parts("category", categories, found.total_seconds))
    operations = found.summed(lambda cell: cell[1])
    if len(operations) > 1:
        console.print(_parts("operation", operations, found.total_seconds))
    if found.trace:
        console.print(_tree(found, wide=console.width >= WIDE))
    if found.statements:
        console.print(_summary(found))
        console.print(_statements(found))
    if found.cache:
        console.print(_cache(found))
    if found.totals:
        console.print(_totals(found.totals))
    for sentence in found.missing:
        console.print(Text(sentence, "yellow"))


def render_outside(exchange: Exchange, advice: str, console: Console) -> None:
    """Print what a client can know by itself, and how to see more."""
    title = f"{exchange.call}: {ms(exchange.total_seconds, DIGITS)} ms at the client"
    console.print(Text(title, "bold"))
    parts = {words: exchange.parts.get(name, 0.0) for name, words in PARTS.items()}
    console.print(_parts("part", parts, exchange.total_seconds))
    console.print(Text(advice, "yellow"))


def _parts(name: str, parts: Mapping[str, float], whole: float) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(name)
    table.add_column("ms", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    for words, seconds in parts.items():
        share = seconds / whole if whole else 0.0
        bar = Bar(whole, 0, seconds, width=BAR)
        table.add_row(words, ms(seconds, DIGITS), per_cent(share), bar)
    return table


def _totals(totals: Mapping[str, float]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("the same call, measured by")
    table.add_column("ms", justify="right")
    for who, seconds in totals.items():
        table.add_row(Text(who), ms(seconds, DIGITS))
    return table


def _tree(found: Explanation, *, wide: bool) -> Table:
    """Show the spans; a line of several says how many, and small ones are left out."""
    bar, indent = (BAR, "  ") if wide else (NARROW_BAR, " ")
    every = list(rows(found))
    shown = [row for row in every if row.seconds >= LEAST * found.total_seconds]
    table = Table(box=None, pad_edge=False, expand=True)
    for name in ("ms", "self", "times"):
        table.add_column(name, justify="right")
    table.add_column("", min_width=bar)
    table.add_column("span", overflow="fold", ratio=1)
    for row in shown:
        # A name is one word and goes on in the next line; a statement is cut.
        is_name = " " not in row.label
        table.add_row(
            ms(row.seconds, DIGITS),
            ms(row.self_seconds, DIGITS),
            f"{row.count}" if row.count > 1 else "",
            Bar(found.total_seconds, 0, row.seconds, width=bar),
            Text(
                indent * row.depth + row.label,
                no_wrap=not is_name,
                overflow="fold" if is_name else "ellipsis",
            ),
        )
    if left_out := len(every) - len(shown):
        words = f"{left_out} of less than {per_cent(LEAST)} each are left out"
        table.add_row("", "", "", "", Text(words, "dim"))
    return table


def _summary(found: Explanation) -> Text:
    count, seconds = found.sql
    slowest = max(one.slowest for one in found.statements)
    lines = [
        f"{count} statements {ms(seconds, DIGITS)} ms, slowest {ms(slowest, DIGITS)}",
        _counts(found.kinds.items()),
        "joins: " + _counts((JOINS[n], counted) for n, counted in found.joins.items()),
    ]
    return Text("\n".join(lines))


def _counts(items: Iterable[tuple[str, Counted]]) -> str:
    return ", ".join(f"{name} {n} ({ms(s, DIGITS)} ms)" for name, (n, s) in items)


def _statements(found: Explanation) -> Table:
    table = Table(box=None, pad_edge=False, expand=True)
    for name in ("times", "ms", "slowest"):
        table.add_column(name, justify="right")
    table.add_column("took longest", no_wrap=True, overflow="ellipsis", ratio=1)
    for one in found.statements[:SHOWN]:
        table.add_row(
            str(one.count),
            ms(one.seconds, DIGITS),
            ms(one.slowest, DIGITS),
            Text(shortened(one.of.fingerprint)),
        )
    return table


def _cache(found: Explanation) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("cache layer", "result"):
        table.add_column(name)
    for name in ("calls", "ms"):
        table.add_column(name, justify="right")
    for one in found.cache:
        table.add_row(one.layer, one.result, str(one.count), ms(one.seconds, DIGITS))
    return table

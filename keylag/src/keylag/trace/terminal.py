"""Displays an explanation in the terminal: bars, a span tree, and tables."""

from collections.abc import Iterable, Mapping
from typing import Final

from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keylag.phases import CATEGORY_NAMES
from keylag.report.formatting import format_ms, format_percent
from keylag.trace.explanation import CountAndSeconds, Explanation
from keylag.trace.http_exchange import HTTP_PARTS, HttpExchange
from keylag.trace.span_rows import span_rows

BAR_WIDTH: Final = 24
"""Columns of a bar with the duration of the call."""
WIDE_CONSOLE: Final = 100
"""Smallest width of a console with wide bars beside the tree."""
NARROW_BAR_WIDTH: Final = 8
STATEMENTS_SHOWN: Final = 5
"""Statement classes in the table; HTML and JSON have all."""
MIN_SHARE: Final = 0.01
"""Smallest share of the call for a row in the tree."""
DECIMALS: Final = 2
JOIN_NAMES: Final = {0: "no join", 1: "one", 2: "two", 3: "three or more"}


def render_explanation(explanation: Explanation, console: Console) -> None:
    """Print the breakdown, the span tree, statements, cache calls and limitations."""
    title = f"{explanation.call}: {format_ms(explanation.total_seconds, DECIMALS)} ms"
    console.print(Text.assemble((title, "bold"), f"  ({explanation.source})"))
    categories = {
        CATEGORY_NAMES[name]: spent for name, spent in explanation.categories.items()
    }
    console.print(_parts_table("category", categories, explanation.total_seconds))
    operations = explanation.sum_cells(lambda cell: cell[1])
    if len(operations) > 1:
        console.print(_parts_table("operation", operations, explanation.total_seconds))
    if explanation.trace:
        console.print(_span_tree(explanation, wide=console.width >= WIDE_CONSOLE))
    if explanation.statements:
        console.print(_statement_summary(explanation))
        console.print(_statement_table(explanation))
    if explanation.cache:
        console.print(_cache_table(explanation))
    if explanation.totals_by_source:
        console.print(_totals_table(explanation.totals_by_source))
    for sentence in explanation.limitations:
        console.print(Text(sentence, "yellow"))


def render_client_view(exchange: HttpExchange, advice: str, console: Console) -> None:
    """Print the parts that a client measures, and advice on how to see more."""
    duration = format_ms(exchange.total_seconds, DECIMALS)
    title = f"{exchange.call}: {duration} ms at the client"
    console.print(Text(title, "bold"))
    parts = {words: exchange.parts.get(name, 0.0) for name, words in HTTP_PARTS.items()}
    console.print(_parts_table("part", parts, exchange.total_seconds))
    console.print(Text(advice, "yellow"))


def _parts_table(name: str, parts: Mapping[str, float], whole: float) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(name)
    table.add_column("ms", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    for words, seconds in parts.items():
        share = seconds / whole if whole else 0.0
        bar = Bar(whole, 0, seconds, width=BAR_WIDTH)
        table.add_row(words, format_ms(seconds, DECIMALS), format_percent(share), bar)
    return table


def _totals_table(totals: Mapping[str, float]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("duration of the same call, by source")
    table.add_column("ms", justify="right")
    for who, seconds in totals.items():
        table.add_row(Text(who), format_ms(seconds, DECIMALS))
    return table


def _span_tree(explanation: Explanation, *, wide: bool) -> Table:
    bar, indent = (BAR_WIDTH, "  ") if wide else (NARROW_BAR_WIDTH, " ")
    every = list(span_rows(explanation))
    shown = [
        row for row in every if row.seconds >= MIN_SHARE * explanation.total_seconds
    ]
    table = Table(box=None, pad_edge=False, expand=True)
    for name in ("ms", "self", "times"):
        table.add_column(name, justify="right")
    table.add_column("", min_width=bar)
    table.add_column("span", overflow="fold", ratio=1)
    for row in shown:
        # Names wrap, statements are truncated.
        is_name = " " not in row.label
        table.add_row(
            format_ms(row.seconds, DECIMALS),
            format_ms(row.self_seconds, DECIMALS),
            f"{row.count}" if row.count > 1 else "",
            Bar(explanation.total_seconds, 0, row.seconds, width=bar),
            Text(
                indent * row.depth + row.label,
                no_wrap=not is_name,
                overflow="fold" if is_name else "ellipsis",
            ),
        )
    if hidden := len(every) - len(shown):
        note = f"{hidden} rows below {format_percent(MIN_SHARE)} each are hidden"
        table.add_row("", "", "", "", Text(note, "dim"))
    return table


def _statement_summary(explanation: Explanation) -> Text:
    count, seconds = explanation.sql
    slowest_seconds = max(one.slowest_seconds for one in explanation.statements)
    total, slowest = (format_ms(s, DECIMALS) for s in (seconds, slowest_seconds))
    lines = [
        f"{count} statements {total} ms, slowest {slowest}",
        _format_counts(explanation.kinds.items()),
        "joins: "
        + _format_counts(
            (JOIN_NAMES[n], counted) for n, counted in explanation.joins.items()
        ),
    ]
    return Text("\n".join(lines))


def _format_counts(items: Iterable[tuple[str, CountAndSeconds]]) -> str:
    return ", ".join(
        f"{name} {n} ({format_ms(s, DECIMALS)} ms)" for name, (n, s) in items
    )


def _statement_table(explanation: Explanation) -> Table:
    table = Table(box=None, pad_edge=False, expand=True)
    for name in ("times", "ms", "slowest"):
        table.add_column(name, justify="right")
    table.add_column("slowest statements", no_wrap=True, overflow="ellipsis", ratio=1)
    for one in explanation.statements[:STATEMENTS_SHOWN]:
        table.add_row(
            str(one.count),
            format_ms(one.seconds, DECIMALS),
            format_ms(one.slowest_seconds, DECIMALS),
            Text(one.statement_class.statement),
        )
    return table


def _cache_table(explanation: Explanation) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("cache layer", "result"):
        table.add_column(name)
    for name in ("calls", "ms"):
        table.add_column(name, justify="right")
    for one in explanation.cache:
        table.add_row(
            one.layer, one.result, str(one.count), format_ms(one.seconds, DECIMALS)
        )
    return table

"""Tables for the terminal: latency at the client, and the breakdown of each call."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keylag.breakdown import Run
from keylag.call_facts import call_facts, call_name
from keylag.diagnosis.ranking import Diagnosis
from keylag.diagnosis.terminal import render_finding
from keylag.phases import CATEGORY_NAMES
from keylag.report.conclusion import conclusion, not_judged
from keylag.report.formatting import (
    CLIENT_STATISTICS,
    RunCall,
    decimals_of,
    format_count,
    format_ms,
    format_percent,
    group_by_call,
    statistic,
    sum_statistic,
)


def render_terminal(
    runs: Sequence[Run], diagnoses: Mapping[str, Diagnosis], console: Console
) -> None:
    """Print the latencies, breakdown and facts of each call, and the diagnoses.

    `diagnoses` has one for each run, by its name.
    """
    shown = [group for group in group_by_call(runs) if group]
    console.print(_latency_table(shown))
    for group in shown:
        console.print()
        console.print(_breakdown_table(group))
        for one in group:
            console.print(Text(f"{one.run['name']}:", "bold"))
            _print_list(call_facts(one.call, one.run["environment"]), console)
    for run in runs:
        _print_diagnosis(run, diagnoses[run["name"]], console)
    for run in runs:
        for warning in run["warnings"]:
            console.print(Text(f"{run['name']}: {warning}", "yellow"))


def _print_diagnosis(run: Run, diagnosis: Diagnosis, console: Console) -> None:
    console.print()
    console.print(Text(f"Diagnosis of {run['name']}", "bold underline"))
    for line in conclusion(run, diagnosis):
        console.print(Text(line))
    for rank, finding in enumerate(diagnosis.findings, start=1):
        render_finding(diagnosis, finding, rank, console, "")
    if lines := not_judged(diagnosis):
        console.print("Not judged:")
        _print_list(lines, console)


def _print_list(sentences: Sequence[str], console: Console) -> None:
    grid = Table.grid(padding=(0, 1))
    for sentence in sentences:
        grid.add_row("-", Text(sentence))
    console.print(grid)


def _latency_table(groups: Sequence[Sequence[RunCall]]) -> Table:
    table = Table(title="Latency at the client, ms", title_justify="left")
    table.add_column("call, run")
    for name in ("requests", *CLIENT_STATISTICS, "errors"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in groups:
        table.add_row(call_name(group[0].call), style="bold")
        for one in group:
            table.add_row(
                f"  {one.run['name']}",
                str(one.call["requests"]),
                *(
                    format_ms(statistic(one.call["client_seconds"], name))
                    for name in CLIENT_STATISTICS
                ),
                str(one.call["errors"]),
            )
        table.add_section()
    return table


def _breakdown_table(group: Sequence[RunCall]) -> Table:
    name = f"{call_name(group[0].call)}: Keystone's time, mean of a request"
    table = Table(title=name, title_justify="left", show_footer=False)
    table.add_column("")
    for one in group:
        table.add_column(f"{one.run['name']} ms", justify="right")
        table.add_column("share", justify="right")
    for category, words in CATEGORY_NAMES.items():
        table.add_row(
            words, *(text for one in group for text in _category_cells(one, category))
        )
    table.add_section()
    table.add_row("sum", *(text for one in group for text in _sum_cells(one)))
    table.add_row(
        "wall time", *(text for one in group for text in _wall_time_cells(one))
    )
    table.add_section()
    table.add_row("SQL statements", *_count_cells(group, "sql_statements"))
    table.add_row("cache calls", *_count_cells(group, "cache_calls"))
    return table


def _category_cells(one: RunCall, category: str) -> tuple[str, str]:
    numbers = one.call["categories"].get(category)
    mean = format_ms(statistic(numbers, "mean"), decimals_of(one))
    return mean, format_percent(statistic(numbers, "share"))


def _sum_cells(one: RunCall) -> tuple[str, str]:
    categories = one.call["categories"]
    return format_ms(
        sum_statistic(categories, "mean"), decimals_of(one)
    ), format_percent(sum_statistic(categories, "share"))


def _wall_time_cells(one: RunCall) -> tuple[str, str]:
    return format_ms(statistic(one.call["wall_seconds"], "mean"), decimals_of(one)), ""


def _count_cells(group: Sequence[RunCall], name: str) -> list[str]:
    numbers = [one.call[name] for one in group]  # type: ignore[literal-required]
    return [
        text
        for found in numbers
        for text in (format_count(statistic(found, "mean")), "")
    ]

"""Print progress, tables, verdicts and warnings."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from keylag_bench.arms_and_workloads import ARMS
from keylag_bench.markdown import to_markdown
from keylag_bench.raw_results import CallCounts, Row
from keylag_bench.results import ArmSummary, Result, analyse, write_json
from keylag_bench.schedule import Plan
from keylag_bench.verdicts import find_warnings, verdicts

COLUMNS = ("", "CPU ms", "CPU of bare", "wall of bare", "spans", "cache")
SECONDS_PER_MINUTE = 60
MIN_WIDTH = 100
"""Width of the console at which every table fits."""


class Progress:
    """Prints the remaining time before each set of processes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()

    def __call__(self, number: int, sets: int, cache: str) -> None:
        """Print the number of the next set, and an estimate from the finished ones."""
        self._console.print(
            f"{number + 1} of {sets}: cache {cache}, {self._left(number, sets)}",
            highlight=False,
        )

    def _left(self, number: int, sets: int) -> str:
        if number == 0:
            return "remaining time not known yet"
        seconds = (time.monotonic() - self._started) / number * (sets - number)
        return f"about {seconds / SECONDS_PER_MINUTE:.0f} min left"


def write_and_print(  # noqa: PLR0913, PLR0917 - all that a run has
    rows: Sequence[Row],
    call_counts: Iterable[CallCounts],
    plan: Plan,
    facts: Mapping[str, Any],
    out: Path,
    console: Console,
) -> None:
    """Analyse the rows, write overhead.json and overhead.md to `out`, and print."""
    result = analyse(rows, call_counts, plan)
    judged = [verdict.as_json() for verdict in verdicts(result)]
    out.mkdir(parents=True, exist_ok=True)
    path = out / "overhead.json"
    write_json(
        path,
        result,
        plan,
        {**facts, "verdicts": judged, "doubts": find_warnings(result)},
    )
    page = out / "overhead.md"
    page.write_text(to_markdown(result), encoding="utf-8")
    print_result(result, console)
    console.print(f"\n{path}\n{page}", highlight=False, soft_wrap=True)


def print_result(result: Result, console: Console) -> None:
    """Print one table per workload, the verdicts and the warnings."""
    # Wide intervals: wrapped lines are better than truncated figures.
    console.width = max(console.width, MIN_WIDTH)
    for workload, arms in result.items():
        console.print(_table(workload, arms))
        for arm, measured in arms.items():
            for line in _lines(arm, measured):
                console.print(line, highlight=False, markup=False, soft_wrap=True)
    for verdict in verdicts(result):
        console.print(verdict.as_text(), highlight=False, markup=False, soft_wrap=True)
    for warning in find_warnings(result):
        console.print(f"Warning: {warning}", highlight=False, markup=False)


def _table(workload: str, arms: Mapping[str, ArmSummary]) -> Table:
    table = Table(
        title=workload,
        title_justify="left",
        box=None,
        pad_edge=False,
        collapse_padding=True,
    )
    for number, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for arm, measured in arms.items():
        table.add_row(ARMS[arm].title, *_cells(measured))
    return table


def _cells(measured: ArmSummary) -> Sequence[str]:
    return (
        f"{measured.cpu_ms:.2f}",
        escape(measured.cpu_ratio.as_text()),
        escape(measured.wall_ratio.as_text()),
        *(f"{measured.counts.get(name, 0):.0f}" for name in ("spans", "cache_calls")),
    )


def _lines(arm: str, measured: ArmSummary) -> Iterator[str]:
    if measured.by_keylag:
        ratio = measured.by_keylag.as_text()
        yield f"{ARMS[arm].title}: {ratio} of Keylag's CPU"
    if measured.export_costs:
        yield f"{ARMS[arm].title}: {measured.export_costs.as_text()}"

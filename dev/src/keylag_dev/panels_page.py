"""Write docs/reference/panels.md: what each query of each dashboard found.

    python -m keylag_dev.panels_page http://127.0.0.1:9090

It asks the Prometheus of a stack that is up and has had all kinds of calls; the page
says which.  A test compares all of the page but the numbers.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Final

from keylag.paths import CHECKOUT
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.check import (
    GENERATED,
    DashboardQuery,
    count_series,
    dashboard_queries,
)
from keylag_dashboards.model import Board

PAGE: Final = CHECKOUT / "docs" / "reference" / "panels.md"
INTRODUCTION: Final = """\
# Queries of the dashboards, and their results

<!-- Made by `python -m keylag_dev.panels_page`; run it again instead of editing. -->

Every query of every panel, variable and annotation, with the number of series that it
found on a stack without ProxySQL, after the calls that the tests of all packages send
(`tests/traffic.py`).

Grafana's intervals are one hour, and each variable is *All*.
A repeated panel has a number for each value; a query without results has the reason.
"""


def page(count: Callable[[DashboardQuery], int]) -> str:
    """Return the page, with the number of series that `count` gives for a query."""
    lines = [INTRODUCTION]
    for board in BOARDS:
        lines += [f"## {board.title}", "", "| shown | as | series | query |"]
        lines += ["|---|---|---|---|", *_rows(board, count), ""]
    return "\n".join(lines)


def _rows(board: Board, count: Callable[[DashboardQuery], int]) -> Iterator[str]:
    """Give the rows of a dashboard's table; what is repeated has one.

    ValueError if a query found nothing that should have found something.
    """
    text = (GENERATED / f"{board.name}.json").read_text(encoding="utf-8")
    found: dict[tuple[str, str, str], list[int]] = {}
    for one in dashboard_queries(json.loads(text)):
        place = (one.where, one.legend, one.expression)
        found.setdefault(place, []).append(count(one))
    empty_reasons = board.empty_reasons()
    for (where, legend, expression), counts in found.items():
        why = empty_reasons.get((where, legend))
        if 0 in counts and why is None:
            message = f"{board.title}, {where}, {legend} found nothing: {expression}"
            raise ValueError(message)
        series = ", ".join(map(str, counts)) + (f": {why}" if 0 in counts else "")
        query = expression.replace("|", r"\|")
        yield f"| {where} | {legend} | {series} | ``{query}`` |"


def main(prometheus: str) -> None:
    """Ask, and write the page."""
    text = page(lambda one: count_series(prometheus, one.query))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

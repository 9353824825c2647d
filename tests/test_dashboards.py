"""Queries of all dashboards against the Prometheus of a healthy stack."""

import json
import time
from collections.abc import Container
from pathlib import Path
from typing import Any

import pytest

from keylag.jtl import Sample
from keylag.stack import Stack
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.check import GENERATED, count_series, dashboard_queries
from keylag_dashboards.model import Board

pytestmark = pytest.mark.stack
RECORDED_SECONDS = 90
"""After this time the recording rules have seen the calls."""


@pytest.mark.parametrize("board", BOARDS, ids=[board.name for board in BOARDS])
def test_every_query_finds_data(
    stack: Stack, called: list[Sample], board: Board
) -> None:
    file: Path = GENERATED / f"{board.name}.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    reasons = board.empty_reasons()
    deadline = time.monotonic() + RECORDED_SECONDS
    while empty := unexpectedly_empty(stack, content, reasons):
        if time.monotonic() > deadline:
            break
        time.sleep(1)

    assert empty == set()
    assert len(list(dashboard_queries(content))) > len(reasons)


def unexpectedly_empty(
    stack: Stack, content: dict[str, Any], reasons: Container[tuple[str, str]]
) -> set[tuple[str, str, str]]:
    """Return place, legend and repeated value of queries that find nothing."""
    return {
        (one.where, one.legend, one.repeated)
        for one in dashboard_queries(content)
        if (one.where, one.legend) not in reasons
        and count_series(stack.url("prometheus"), one.query) == 0
    }


def test_invalid_query_is_an_error(stack: Stack) -> None:
    with pytest.raises(ValueError, match="sum by"):
        count_series(stack.url("prometheus"), "sum by (job (up)")

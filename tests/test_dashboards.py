"""Queries of all dashboards against the Prometheus of a healthy stack."""

import json
from pathlib import Path

import pytest

from keylag.jtl import Sample
from keylag.stack import Stack
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.check import GENERATED, count_series, dashboard_queries
from keylag_dashboards.model import Board

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("board", BOARDS, ids=[board.name for board in BOARDS])
def test_every_query_finds_data(
    stack: Stack, called: list[Sample], board: Board
) -> None:
    file: Path = GENERATED / f"{board.name}.json"
    found = {
        (one.where, one.legend, one.repeated): count_series(
            stack.url("prometheus"), one.query
        )
        for one in dashboard_queries(json.loads(file.read_text(encoding="utf-8")))
    }

    empty = {key for key, count in found.items() if count == 0}
    empty_reasons = board.empty_reasons()
    assert {key for key in empty if key[:2] not in empty_reasons} == set()
    assert len(found) > len(empty_reasons)


def test_invalid_query_is_an_error(stack: Stack) -> None:
    with pytest.raises(ValueError, match="sum by"):
        count_series(stack.url("prometheus"), "sum by (job (up)")

"""Queries of all dashboards against the Prometheus of a healthy stack."""

import json
from pathlib import Path

import pytest

from keylag.jtl import Sample
from keylag.stack import Stack
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.check import GENERATED, questions, samples
from keylag_dashboards.model import Board

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("board", BOARDS, ids=[board.name for board in BOARDS])
def test_every_query_finds_data(
    stack: Stack, called: list[Sample], board: Board
) -> None:
    file: Path = GENERATED / f"{board.name}.json"
    counts = {
        (one.where, one.legend, one.repeated): samples(
            stack.url("prometheus"), one.query
        )
        for one in questions(json.loads(file.read_text(encoding="utf-8")))
    }

    empty = {key for key, count in counts.items() if count == 0}
    excuses = board.excuses()
    assert {key for key in empty if key[:2] not in excuses} == set()
    assert len(counts) > len(excuses)


def test_invalid_query_is_an_error(stack: Stack) -> None:
    with pytest.raises(ValueError, match="sum by"):
        samples(stack.url("prometheus"), "sum by (job (up)")

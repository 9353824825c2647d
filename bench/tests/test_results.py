"""From rows to overhead.json and verdicts, on a Keystone whose cost is known."""

import csv
import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from test_schedule import NAMES, PLAN, measured

from keylag_bench.intervals import Interval
from keylag_bench.report import render
from keylag_bench.results import analyse, environment, save
from keylag_bench.rows import Row, written
from keylag_bench.verdicts import doubts, judge, verdicts


def test_known_costs_come_out() -> None:
    """1.01 and 1.2 seconds by 1, for CPU and wall alike; 1 % is 5 % of 20 %."""
    _, rows, counted = measured()

    result = analyse(rows, counted, PLAN)

    arms = result["get_warm_redis"]
    assert set(result) == {workload.name for workload in PLAN.workloads}
    assert arms["bare"].cpu_ratio.as_list() == [1, 1, 1]
    assert arms["keylag"].cpu_ratio.as_list() == pytest.approx([1.01] * 3)
    assert arms["otel"].wall_ratio.as_list() == pytest.approx([1.2] * 3)
    assert arms["otel"].cpu_ms == pytest.approx(1200)
    assert arms["otel"].wall_ms == pytest.approx(2400)
    assert arms["keylag"].share_of_otel is not None
    assert arms["keylag"].share_of_otel.mid == pytest.approx(0.05)


def test_a_workload_without_a_whole_block_is_left_out() -> None:
    """What Ctrl-C cut off is not there, and the rest is."""
    _, rows, counted = measured()
    some = [row for row in rows if row.workload != "get_cache_off"][:-1]

    result = analyse(some, counted, PLAN)

    assert set(result) == {"get_warm_redis", "post_warm_redis"}
    assert analyse([], [], PLAN) == {}


def test_verdicts_on_both_goals() -> None:
    """The ratio always; the share where OpenTelemetry sees more than one span."""
    _, rows, counted = measured()

    found = verdicts(analyse(rows, counted, PLAN))
    lines = [verdict.as_text() for verdict in found]

    assert {verdict.outcome for verdict in found} == {"met"}
    assert lines[:2] == [
        "get_warm_redis: CPU <= 1.03 of bare: met (1.010 [1.010, 1.010])",
        (
            "get_warm_redis: adds <= 0.1 of what OpenTelemetry adds: "
            "met (0.050 [0.050, 0.050])"
        ),
    ]
    assert len(verdicts(analyse(rows, [], PLAN))) == len(PLAN.workloads)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.00, 1.02, "met"),
        (1.00, 1.03, "met"),
        (1.02, 1.04, "cannot tell"),
        (1.03, 1.04, "cannot tell"),
        (1.031, 1.04, "missed"),
    ],
)
def test_an_interval_across_the_goal_cannot_tell(
    low: float, high: float, expected: str
) -> None:
    """Only an interval on one side of the goal decides."""
    assert judge(Interval(low, low, high), 1.03) == expected


def test_a_good_control_leaves_no_doubt() -> None:
    """Bare Keystone costs what bare Keystone costs."""
    _, rows, counted = measured()

    assert doubts(analyse(rows, counted, PLAN)) == []


def test_a_bad_control_is_said() -> None:
    """A control that differs from itself, and one that says nothing, are named."""
    _, rows, counted = measured()
    slowed = [_slowed(row, 1.05 if row.restart else 1.2) for row in rows]

    found = doubts(analyse(slowed, counted, PLAN))

    assert len(found) == 2 * len(PLAN.workloads)
    assert "differs from itself" in found[0]
    assert "wide" in found[1]


def test_too_few_blocks_are_said() -> None:
    """A quick run proves nothing, and says so."""
    plan = PLAN.shortened(2)
    _, rows, counted = measured(plan)

    found = doubts(analyse(rows, counted, plan))

    assert len(found) == len(NAMES)
    assert "4 blocks are too few" in found[0]


def _slowed(row: Row, factor: float) -> Row:
    factor = factor if row.arm == "bare_again" else 1.0
    return Row(**{**vars(row), "cpu_seconds": row.cpu_seconds * factor})


def test_what_is_written(tmp_path: Path) -> None:
    """overhead.json has the ratios where others look for them, and the seed."""
    _, rows, counted = measured()
    path = tmp_path / "overhead.json"

    save(path, analyse(rows, counted, PLAN), PLAN, {"environment": environment()})

    read = json.loads(path.read_text())
    arm = read["workloads"]["post_warm_redis"]["otel"]
    assert arm["cpu_ratio"] == pytest.approx([1.2] * 3)
    assert arm["wall_ratio"] == pytest.approx([1.2] * 3)
    assert (arm["spans"], arm["cache_calls"]) == (7, 3)
    assert (read["seed"], read["restarts"], read["blocks"]) == (7, 3, 4)
    assert read["environment"]["sqlalchemy"].startswith("2.0.")


def test_rows_are_written_as_they_come(tmp_path: Path) -> None:
    """A row is on the disk before the next one is measured."""
    path = tmp_path / "overhead.csv"
    with written(path) as keep:
        keep(Row("w", 0, 1, "bare", 10, 0.5, 0.75))
        [line] = list(csv.DictReader(path.open()))

    assert (line["workload"], line["arm"], line["block"]) == ("w", "bare", "1")
    assert (line["cpu_seconds"], line["wall_seconds"]) == ("0.5", "0.75")


def test_the_table_fits_eighty_columns() -> None:
    """Every arm has its line, with ratios, spans and cache calls."""
    _, rows, counted = measured()
    console = Console(file=StringIO(), width=80)

    render(analyse(rows, counted, PLAN), console)

    text = console.file.getvalue()  # type: ignore[attr-defined]
    [line] = [line for line in text.splitlines() if "OpenTelemetry " in line][:1]
    assert "1.200 [1.200, 1.200]" in line
    assert line.split()[-2:] == ["7", "3"]

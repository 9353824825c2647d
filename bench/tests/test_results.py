"""Analysis, verdicts and output for an executor with known costs."""

import csv
import json
from dataclasses import replace
from io import StringIO
from math import inf, nan
from pathlib import Path

import pytest
from rich.console import Console
from test_schedule import NAMES, PLAN, run_plan

from keylag_bench.arms_and_workloads import ARMS
from keylag_bench.intervals import Interval
from keylag_bench.markdown import to_markdown
from keylag_bench.raw_results import Row, open_csv, read_rows
from keylag_bench.report import print_result
from keylag_bench.results import (
    ArmSummary,
    Result,
    analyse,
    describe_environment,
    write_json,
)
from keylag_bench.verdicts import Verdict, find_warnings, judge, verdicts


def test_ratios_have_the_known_costs() -> None:
    _, rows, call_counts = run_plan()

    result = analyse(rows, call_counts, PLAN)

    arms = result["get_warm_redis"]
    assert set(result) == {workload.name for workload in PLAN.workloads}
    assert arms["bare"].cpu_ratio.as_list() == [1, 1, 1]
    assert arms["keylag"].cpu_ratio.mid == pytest.approx(1.01)
    assert arms["keylag"].cpu_ratio.contains(1.0101)
    assert not arms["keylag"].cpu_ratio.contains(1.012)
    assert arms["otel"].wall_ratio.mid == pytest.approx(1.2)
    assert arms["otel"].cpu_ms == pytest.approx(1200)
    assert arms["otel"].wall_ms == pytest.approx(2400)
    assert arms["keylag"].share_of_otel is not None
    assert arms["keylag"].share_of_otel.mid == pytest.approx(0.05)
    assert arms["otel"].share_of_otel is arms["otel"].by_keylag is None
    assert (arms["otel"].restarts, arms["otel"].rounds) == (3, 12)


def test_workload_without_complete_round_is_left_out() -> None:
    _, rows, call_counts = run_plan()
    some = [row for row in rows if row.workload != "get_cache_off"][:-1]

    result = analyse(some, call_counts, PLAN)

    assert set(result) == {"get_warm_redis", "post_warm_redis"}
    assert analyse([], [], PLAN) == {}


def test_both_goals_get_verdicts() -> None:
    _, rows, call_counts = run_plan()

    found = verdicts(analyse(rows, call_counts, PLAN))
    lines = [verdict.as_text() for verdict in found]

    assert {verdict.outcome for verdict in found} == {"met"}
    assert lines[:2] == [
        "get_warm_redis: CPU <= 1.03 of bare: met (1.010 [1.009, 1.011])",
        (
            "get_warm_redis: adds <= 0.1 of what OpenTelemetry adds: "
            "met (0.050 [0.044, 0.056])"
        ),
    ]
    assert len(verdicts(analyse(rows, [], PLAN))) == len(PLAN.workloads)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-inf, inf, "cannot tell"),
        (nan, nan, "cannot tell"),
        (1.04, nan, "missed"),
        (1.00, 1.02, "met"),
        (1.00, 1.03, "met"),
        (1.02, 1.04, "cannot tell"),
        (1.03, 1.04, "cannot tell"),
        (1.031, 1.04, "missed"),
    ],
)
def test_verdict_needs_the_whole_interval_on_one_side_of_the_goal(
    low: float, high: float, expected: str
) -> None:
    assert judge(Interval(low, low, high), 1.03) == expected


def test_equal_control_gives_no_warnings() -> None:
    _, rows, call_counts = run_plan()

    assert find_warnings(analyse(rows, call_counts, PLAN)) == []


def test_share_is_judged_above_one_and_a_half_spans_per_request() -> None:
    _, rows, call_counts = run_plan()
    goals = {}
    for spans in (0, 1, 1.5, 2):
        own = [replace(one, spans=spans) for one in call_counts]
        goals[spans] = len(verdicts(analyse(rows, own, PLAN))) // len(NAMES)

    assert goals == {0: 1, 1: 1, 1.5: 1, 2: 2}


def test_verdict_as_json_has_interval_with_null_for_infinity() -> None:
    found = Verdict("get_cache_off", "CPU <= 1.02", "met", Interval(0.9, 1.0, inf))

    assert found.as_json() == {
        "workload": "get_cache_off",
        "goal": "CPU <= 1.02",
        "outcome": "met",
        "found": [0.9, 1.0, None],
    }
    assert found.as_text() == "get_cache_off: CPU <= 1.02: met (1.000 (no interval))"


def control_result(low: float, high: float) -> Result:
    """Return a result with the control alone and enough rounds."""
    base, control = (
        ArmSummary(found, found, 1.0, 1.0, restarts=6, rounds=72)
        for found in (Interval(1.0, 1.0, 1.0), Interval(low, 1.0, high))
    )
    return {"get_cache_off": {"bare": base, "bare_again": control}}


def test_control_warnings_name_interval_and_remedy() -> None:
    assert find_warnings(control_result(0.995, 1.005)) == []
    assert find_warnings(control_result(1.0, 1.015)) == []
    assert find_warnings(control_result(1.001, 1.015)) == [
        (
            "get_cache_off: the control differs from bare Keystone, [1.001, 1.015]. "
            "This happens by chance in one workload of twenty. Otherwise other "
            "programs used the machine: repeat the run."
        )
    ]
    assert find_warnings(control_result(0.98, 1.01)) == [
        (
            "get_cache_off: the interval of the control is 0.030 wide. Use a quieter "
            "machine, or more --restarts and --rounds."
        )
    ]
    assert find_warnings(control_result(1.0, 1.0)) == [
        (
            "get_cache_off: all restarts are exactly equal, so they were not measured; "
            "there is no verdict."
        )
    ]
    assert find_warnings({}) == []


def test_differing_control_gives_two_warnings_per_workload() -> None:
    _, rows, call_counts = run_plan()
    slowed = [_slowed(row, 1.18 if row.restart else 1.2) for row in rows]

    found = find_warnings(analyse(slowed, call_counts, PLAN))

    assert len(found) == 2 * len(PLAN.workloads)
    assert "the control differs from bare Keystone, [1.1" in found[0]
    assert "the interval of the control is 0." in found[1]


def test_four_rounds_give_warning_and_no_verdict() -> None:
    plan = PLAN.with_size(2)
    _, rows, call_counts = run_plan(plan)

    result = analyse(rows, call_counts, plan)
    found = find_warnings(result)

    assert found == [
        f"{name}: 4 rounds are too few; there is no verdict." for name in NAMES
    ]
    assert {verdict.outcome for verdict in verdicts(result)} == {"cannot tell"}


def test_ten_rounds_are_enough_and_nine_are_not() -> None:
    plan = replace(PLAN, restarts=2, rounds=5)
    _, rows, call_counts = run_plan(plan)

    assert "too few" not in " ".join(find_warnings(analyse(rows, call_counts, plan)))
    nine = [row for row in rows if (row.restart, row.round) != (1, 4)]
    assert "9 rounds are too few" in find_warnings(analyse(nine, call_counts, plan))[0]


def test_one_restart_gives_no_interval_and_no_verdict() -> None:
    plan = replace(PLAN, restarts=1, rounds=50)
    _, rows, call_counts = run_plan(plan)
    result = analyse(rows, call_counts, plan)
    ratio = result["get_cache_off"]["keylag"].cpu_ratio

    assert (ratio.low, ratio.high) == (-inf, inf)
    assert {verdict.outcome for verdict in verdicts(result)} == {"cannot tell"}
    assert find_warnings(result)[0] == (
        "get_warm_redis: 1 restart is too few for an interval, which needs at least 2; "
        "there is no verdict."
    )
    console = Console(file=StringIO(), width=80)
    print_result(result, console)
    assert "(no interval)" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "1.010 (no interval)" in to_markdown(result)


def test_exactly_equal_restarts_give_no_verdict() -> None:
    _, rows, call_counts = run_plan()
    copied = [replace(row, restart=number) for number in range(3) for row in rows[:96]]
    copied = [row for row in copied if row.workload == "get_cache_off"]
    result = analyse(copied, call_counts, PLAN)

    assert {verdict.outcome for verdict in verdicts(result)} == {"cannot tell"}
    assert "all restarts are exactly equal" in find_warnings(result)[0]


def test_missing_control_gives_a_warning() -> None:
    plan = replace(PLAN, arms=("bare", "keylag"))
    _, rows, call_counts = run_plan(plan)

    found = find_warnings(analyse(rows, call_counts, plan))

    assert found[0] == "get_warm_redis: the control is missing. Add --arms bare_again."
    assert len(found) == len(NAMES)


def test_markdown_has_tables_relative_to_bare_and_to_keylag() -> None:
    plan = replace(PLAN, arms=("bare", "keylag", "keylag_python"))
    _, rows, call_counts = run_plan(plan)

    found = to_markdown(analyse(rows, call_counts, plan)).splitlines()

    assert found[2:4] == [
        "| call | Keylag | Keylag without C |",
        "| --- | ---: | ---: |",
    ]
    assert found[4].startswith("| get_warm_redis | 1.010 [1.008, 1.012] | 1.100 [1.09")
    assert found[10] == "| call | Keylag without C |"
    assert found[12].startswith("| get_warm_redis | 1.089 [1.08")
    assert len(found) == 15


def _slowed(row: Row, factor: float) -> Row:
    factor = factor if row.arm == "bare_again" else 1.0
    return Row(**{**vars(row), "cpu_seconds": row.cpu_seconds * factor})


def test_json_has_ratios_counts_seed_and_environment(tmp_path: Path) -> None:
    _, rows, call_counts = run_plan()
    path = tmp_path / "overhead.json"

    write_json(
        path,
        analyse(rows, call_counts, PLAN),
        PLAN,
        {"environment": describe_environment()},
    )

    content = json.loads(path.read_text())
    arm = content["workloads"]["post_warm_redis"]["otel"]
    assert arm["cpu_ratio"] == pytest.approx([1.2] * 3, abs=0.002)
    assert arm["wall_ratio"] == pytest.approx([1.2] * 3, abs=0.002)
    assert (arm["restarts"], arm["rounds"]) == (3, 12)
    assert (arm["spans"], arm["cache_calls"]) == (7, 3)
    assert (content["seed"], content["restarts"], content["rounds"]) == (7, 3, 4)
    assert content["environment"]["sqlalchemy"].startswith("2.0.")


def test_each_row_is_flushed_to_the_csv(tmp_path: Path) -> None:
    path = tmp_path / "overhead.csv"
    with open_csv(path) as write_row:
        write_row(Row("w", 0, 1, "bare", 10, 0.5, 0.75))
        [line] = list(csv.DictReader(path.open()))

    assert (line["workload"], line["arm"], line["round"]) == ("w", "bare", "1")
    assert (line["cpu_seconds"], line["wall_seconds"]) == ("0.5", "0.75")


@pytest.mark.parametrize("value", ["nan", "inf", "-1.0", "0.0"])
def test_rows_without_positive_finite_times_are_refused(
    tmp_path: Path, value: str
) -> None:
    path = tmp_path / "overhead.csv"
    good = Row("w", 0, 1, "bare", 10, 0.5, 0.75)
    for bad in ("cpu_seconds", "wall_seconds"):
        with open_csv(path) as write_row:
            write_row(good)
            write_row(replace(good, round=2, **{bad: float(value)}))

        with pytest.raises(ValueError, match="without positive, finite times"):
            read_rows(path)
    with open_csv(path) as write_row:
        write_row(good)
    assert read_rows(path) == [good]


def test_printed_table_fits_80_columns() -> None:
    _, rows, call_counts = run_plan()
    console = Console(file=StringIO(), width=80)

    print_result(analyse(rows, call_counts, PLAN), console)

    text = console.file.getvalue()  # type: ignore[attr-defined]
    [line] = [line for line in text.splitlines() if "OpenTelemetry " in line][:1]
    assert "1.200 [1.199, 1.201]" in line
    assert line.split()[-2:] == ["7", "3"]


def test_wide_intervals_widen_the_table() -> None:
    narrow, wide = Interval(0.991, 1.0, 1.009), Interval(-10.123, 1.0, 12.123)
    for found, columns in ((narrow, 80), (wide, 100)):
        arms = dict.fromkeys(ARMS, ArmSummary(found, found, 12.345, 15.5, 6, 72))
        console = Console(file=StringIO(), width=80)
        print_result({"get_cache_off": arms}, console)

        table = console.file.getvalue().splitlines()[: len(ARMS) + 2]  # type: ignore[attr-defined]
        assert all(line.count(found.as_text()) == 2 for line in table[2:])
        assert all(arm.title in "".join(table) for arm in ARMS.values())
        assert max(len(line.rstrip()) for line in table) <= columns

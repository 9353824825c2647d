"""From rows to overhead.json and verdicts, on a Keystone whose cost is known."""

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


def test_known_costs_come_out() -> None:
    """1.01 and 1.2 seconds by 1, for CPU and wall alike; 1 % is 5 % of 20 %."""
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


def test_a_workload_without_a_whole_block_is_left_out() -> None:
    """What Ctrl-C cut off is not there, and the rest is."""
    _, rows, call_counts = run_plan()
    some = [row for row in rows if row.workload != "get_cache_off"][:-1]

    result = analyse(some, call_counts, PLAN)

    assert set(result) == {"get_warm_redis", "post_warm_redis"}
    assert analyse([], [], PLAN) == {}


def test_verdicts_on_both_goals() -> None:
    """The ratio always; the share where OpenTelemetry sees more than one span."""
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
def test_an_interval_across_the_goal_cannot_tell(
    low: float, high: float, expected: str
) -> None:
    """Only an interval on one side of the goal decides."""
    assert judge(Interval(low, low, high), 1.03) == expected


def test_a_good_control_leaves_no_doubt() -> None:
    """Bare Keystone costs what bare Keystone costs."""
    _, rows, call_counts = run_plan()

    assert find_warnings(analyse(rows, call_counts, PLAN)) == []


def test_a_share_is_judged_where_opentelemetry_sees_more_than_the_request() -> None:
    """By the spans of a request: one and a half are not more than that."""
    _, rows, call_counts = run_plan()
    goals = {}
    for spans in (0, 1, 1.5, 2):
        own = [replace(one, spans=spans) for one in call_counts]
        goals[spans] = len(verdicts(analyse(rows, own, PLAN))) // len(NAMES)

    assert goals == {0: 1, 1: 1, 1.5: 1, 2: 2}


def test_a_verdict_as_json() -> None:
    """With the interval that it rests on; its infinite ends are null."""
    found = Verdict("get_cache_off", "CPU <= 1.02", "met", Interval(0.9, 1.0, inf))

    assert found.as_json() == {
        "workload": "get_cache_off",
        "goal": "CPU <= 1.02",
        "outcome": "met",
        "found": [0.9, 1.0, None],
    }
    assert found.as_text() == "get_cache_off: CPU <= 1.02: met (1.000 (no interval))"


def a_control(low: float, high: float) -> Result:
    """Return the result of a control alone, with enough rounds."""
    base, control = (
        ArmSummary(found, found, 1.0, 1.0, restarts=6, rounds=72)
        for found in (Interval(1.0, 1.0, 1.0), Interval(low, 1.0, high))
    )
    return {"get_cache_off": {"bare": base, "bare_again": control}}


def test_what_is_said_of_a_control() -> None:
    """In whole sentences, with what to do next."""
    assert find_warnings(a_control(0.995, 1.005)) == []
    assert find_warnings(a_control(1.0, 1.015)) == []
    assert find_warnings(a_control(1.001, 1.015)) == [
        (
            "get_cache_off: bare Keystone differs from itself, [1.001, 1.015]. One "
            "workload in twenty does by chance; otherwise something else was using the "
            "machine: run it again."
        )
    ]
    assert find_warnings(a_control(0.98, 1.01)) == [
        (
            "get_cache_off: the control's interval is 0.030 wide. Run it on a quieter "
            "machine, or with more --restarts and --rounds."
        )
    ]
    assert find_warnings(a_control(1.0, 1.0)) == [
        (
            "get_cache_off: all restarts are exactly alike, as no measurements are; no "
            "verdict holds."
        )
    ]
    assert find_warnings({}) == []


def test_a_bad_control_is_said() -> None:
    """A control that differs from itself, and one that says nothing, are named."""
    _, rows, call_counts = run_plan()
    slowed = [_slowed(row, 1.18 if row.restart else 1.2) for row in rows]

    found = find_warnings(analyse(slowed, call_counts, PLAN))

    assert len(found) == 2 * len(PLAN.workloads)
    assert "bare Keystone differs from itself, [1.1" in found[0]
    assert "the control's interval is 0." in found[1]


def test_too_few_blocks_are_said() -> None:
    """A quick run proves nothing, and says so."""
    plan = PLAN.with_size(2)
    _, rows, call_counts = run_plan(plan)

    result = analyse(rows, call_counts, plan)
    found = find_warnings(result)

    assert found == [
        f"{name}: 4 rounds are too few; no verdict holds." for name in NAMES
    ]
    assert {verdict.outcome for verdict in verdicts(result)} == {"cannot tell"}


def test_ten_blocks_are_enough() -> None:
    """And nine are not."""
    plan = replace(PLAN, restarts=2, rounds=5)
    _, rows, call_counts = run_plan(plan)

    assert "too few" not in " ".join(find_warnings(analyse(rows, call_counts, plan)))
    nine = [row for row in rows if (row.restart, row.round) != (1, 4)]
    assert "9 rounds are too few" in find_warnings(analyse(nine, call_counts, plan))[0]


def test_one_restart_decides_nothing() -> None:
    """Its many rounds are one process each, so there is no interval."""
    plan = replace(PLAN, restarts=1, rounds=50)
    _, rows, call_counts = run_plan(plan)
    result = analyse(rows, call_counts, plan)
    ratio = result["get_cache_off"]["keylag"].cpu_ratio

    assert (ratio.low, ratio.high) == (-inf, inf)
    assert {verdict.outcome for verdict in verdicts(result)} == {"cannot tell"}
    assert find_warnings(result)[0] == (
        "get_warm_redis: 1 restart has no interval, which needs at least 2 restarts; "
        "no verdict holds."
    )
    console = Console(file=StringIO(), width=80)
    print_result(result, console)
    assert "(no interval)" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "1.010 (no interval)" in to_markdown(result)


def test_restarts_that_are_exactly_alike_decide_nothing() -> None:
    """They have been copied, or what timed them was too coarse."""
    _, rows, call_counts = run_plan()
    copied = [replace(row, restart=number) for number in range(3) for row in rows[:96]]
    copied = [row for row in copied if row.workload == "get_cache_off"]
    result = analyse(copied, call_counts, PLAN)

    assert {verdict.outcome for verdict in verdicts(result)} == {"cannot tell"}
    assert "all restarts are exactly alike" in find_warnings(result)[0]


def test_a_measurement_without_a_control_is_said() -> None:
    """Nothing shows then what else used the machine."""
    plan = replace(PLAN, arms=("bare", "keylag"))
    _, rows, call_counts = run_plan(plan)

    found = find_warnings(analyse(rows, call_counts, plan))

    assert found[0] == "get_warm_redis: no control was run. Add --arms bare_again."
    assert len(found) == len(NAMES)


def test_every_call_and_arm_in_one_table() -> None:
    """As Markdown: bare Keystone's own column would be ones."""
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


def test_what_is_written(tmp_path: Path) -> None:
    """overhead.json has the ratios where others look for them, and the seed."""
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


def test_rows_are_written_as_they_come(tmp_path: Path) -> None:
    """A row can be read before the next one is measured."""
    path = tmp_path / "overhead.csv"
    with open_csv(path) as write_row:
        write_row(Row("w", 0, 1, "bare", 10, 0.5, 0.75))
        [line] = list(csv.DictReader(path.open()))

    assert (line["workload"], line["arm"], line["round"]) == ("w", "bare", "1")
    assert (line["cpu_seconds"], line["wall_seconds"]) == ("0.5", "0.75")


@pytest.mark.parametrize("value", ["nan", "inf", "-1.0", "0.0"])
def test_rows_that_no_clock_has_measured_are_refused(
    tmp_path: Path, value: str
) -> None:
    """One would make every ratio of its workload one, or none."""
    path = tmp_path / "overhead.csv"
    good = Row("w", 0, 1, "bare", 10, 0.5, 0.75)
    for bad in ("cpu_seconds", "wall_seconds"):
        with open_csv(path) as write_row:
            write_row(good)
            write_row(replace(good, round=2, **{bad: float(value)}))

        with pytest.raises(ValueError, match="took no time, or no number"):
            read_rows(path)
    with open_csv(path) as write_row:
        write_row(good)
    assert read_rows(path) == [good]


def test_the_table_fits_eighty_columns() -> None:
    """Every arm has its line, with ratios, spans and cache calls."""
    _, rows, call_counts = run_plan()
    console = Console(file=StringIO(), width=80)

    print_result(analyse(rows, call_counts, PLAN), console)

    text = console.file.getvalue()  # type: ignore[attr-defined]
    [line] = [line for line in text.splitlines() if "OpenTelemetry " in line][:1]
    assert "1.200 [1.199, 1.201]" in line
    assert line.split()[-2:] == ["7", "3"]


def test_wide_intervals_of_every_arm_are_shown_whole() -> None:
    """On eighty columns, too; narrow ones fit them."""
    narrow, wide = Interval(0.991, 1.0, 1.009), Interval(-10.123, 1.0, 12.123)
    for found, columns in ((narrow, 80), (wide, 100)):
        arms = dict.fromkeys(ARMS, ArmSummary(found, found, 12.345, 15.5, 6, 72))
        console = Console(file=StringIO(), width=80)
        print_result({"get_cache_off": arms}, console)

        table = console.file.getvalue().splitlines()[: len(ARMS) + 2]  # type: ignore[attr-defined]
        assert all(line.count(found.as_text()) == 2 for line in table[2:])
        assert all(arm.title in "".join(table) for arm in ARMS.values())
        assert max(len(line.rstrip()) for line in table) <= columns

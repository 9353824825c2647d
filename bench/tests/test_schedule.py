"""The order of a measurement: balanced, and decided by one seed."""

from dataclasses import replace
from itertools import groupby

import pytest
from fake_executor import CACHE_CALLS, FakeExecutor

from keylag_bench.arms_and_workloads import WORKLOADS
from keylag_bench.raw_results import CallCounts, Row
from keylag_bench.schedule import COUNTED_REQUESTS, Plan, Schedule

ARMS = ("bare", "bare_again", "keylag", "otel")
NAMES = ("get_warm_redis", "post_warm_redis", "get_cache_off")
PLAN = Plan([WORKLOADS[name] for name in NAMES], ARMS, restarts=3, rounds=4, seed=7)


def run_plan(
    plan: Plan = PLAN, executor: FakeExecutor | None = None
) -> tuple[FakeExecutor, list[Row], list[CallCounts]]:
    """Run a plan; return the executor, the rows and the call counts."""
    executor = executor or FakeExecutor()
    rows: list[Row] = []
    call_counts: list[CallCounts] = []
    schedule = Schedule(
        plan, executor, rows.append, call_counts.append, lambda *_: None
    )
    try:
        schedule.run()
    except KeyboardInterrupt:
        executor.log.append(("interrupted",))
    return executor, rows, call_counts


def test_every_round_has_every_arm_once() -> None:
    _, rows, _ = run_plan()

    groups = [
        (key, [row.arm for row in group])
        for key, group in groupby(
            rows, lambda row: (row.workload, row.restart, row.round)
        )
    ]
    assert len(groups) == len(NAMES) * 3 * 4
    assert len({key for key, _ in groups}) == len(groups)
    assert all(sorted(arms) == sorted(ARMS) for _, arms in groups)


def test_every_turn_has_every_arm_once_in_random_order() -> None:
    one = replace(PLAN, workloads=PLAN.workloads[:1], restarts=1, rounds=1)
    executor, rows, _ = run_plan(one)

    turn = one.workloads[0].turn
    calls = executor.calls()[-sum(row.requests for row in rows) // turn :]
    turns = [
        tuple(str(arm) for arm, _, _ in calls[start : start + len(ARMS)])
        for start in range(0, len(calls), len(ARMS))
    ]
    assert all(sorted(turn) == sorted(ARMS) for turn in turns)
    assert {number for _, _, number in calls} == {turn}
    assert len(set(turns)) > 3


def test_every_arm_collects_garbage_before_a_round() -> None:
    one = replace(PLAN, workloads=PLAN.workloads[:1], restarts=1, rounds=3)
    executor, rows, _ = run_plan(one)

    kinds = [kind for kind, _ in groupby(entry[0] for entry in executor.log)]
    collected = [entry[1] for entry in executor.log if entry[0] == "collect_garbage"]
    assert kinds == ["start", "run", *["collect_garbage", "run"] * 3, "stop"]
    assert sorted(map(str, collected)) == sorted([*ARMS] * 3)
    assert len(rows) == 3 * len(ARMS)


def test_seed_decides_the_order() -> None:
    first, _, _ = run_plan()
    again, _, _ = run_plan()
    other, _, _ = run_plan(replace(PLAN, seed=8))

    assert first.log == again.log
    assert first.log != other.log


def test_every_restart_and_cache_starts_and_stops_processes() -> None:
    executor, _, _ = run_plan()

    turns = [entry for entry in executor.log if entry[0] in {"start", "stop"}]
    starts = turns[::2]
    assert [entry[0] for entry in turns] == ["start", "stop"] * 6
    assert sorted(str(entry[1]) for entry in starts[:2]) == ["off", "redis"]
    assert len({entry[3] for entry in starts}) == 6


def test_warm_up_calls_have_no_rows() -> None:
    executor, rows, _ = run_plan(replace(PLAN, restarts=1, rounds=1))

    warming = len(NAMES) * len(ARMS)
    counting = 2 * warming
    turn = {workload.name: workload.turn for workload in PLAN.workloads}
    measured = sum(row.requests // turn[row.workload] for row in rows)
    assert len(rows) == warming
    assert len(executor.calls()) == warming + counting + measured


def test_spans_and_cache_calls_are_counted_per_request() -> None:
    _, _, call_counts = run_plan()

    found = {
        (one.workload, one.arm): (one.spans, one.cache_calls) for one in call_counts
    }
    assert COUNTED_REQUESTS > 1
    assert len(found) == len(call_counts) == len(NAMES) * len(ARMS)
    assert found["get_warm_redis", "otel"] == (7, CACHE_CALLS)
    assert found["get_warm_redis", "keylag"] == (0, CACHE_CALLS)


def test_interruption_stops_processes_and_keeps_rows() -> None:
    executor, rows, _ = run_plan(executor=FakeExecutor(fail_after=400))

    assert executor.log[-2:] == [("stop",), ("interrupted",)]
    assert 0 < len(rows) < 400


@pytest.mark.parametrize(("requests", "expected"), [(None, [30, 20, 9]), (5, [5] * 3)])
def test_requests_of_all_workloads_can_be_set(
    requests: int | None, expected: list[int]
) -> None:
    plan = PLAN.with_requests(requests)

    assert [workload.requests for workload in plan.workloads] == expected


def test_with_size_sets_restarts_and_rounds() -> None:
    plan = PLAN.with_size(2)

    assert (plan.restarts, plan.rounds) == (2, 2)
    assert plan.workloads == PLAN.workloads

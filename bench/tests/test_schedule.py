"""The order of a measurement is a contract: fair, and all of it from one seed."""

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
    """Run a plan on an executor; returns it with what was kept."""
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


def test_every_block_has_every_arm_once() -> None:
    """Each (workload, restart, round) has all arms, one after the other."""
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


def test_the_arms_of_a_block_take_turns() -> None:
    """Every turn has every arm once; the order is drawn anew."""
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


def test_every_arm_collects_its_garbage_before_a_block() -> None:
    """All of them, before the first turn of any."""
    one = replace(PLAN, workloads=PLAN.workloads[:1], restarts=1, rounds=3)
    executor, rows, _ = run_plan(one)

    kinds = [kind for kind, _ in groupby(entry[0] for entry in executor.log)]
    tidied = [entry[1] for entry in executor.log if entry[0] == "tidy"]
    assert kinds == ["start", "run", *["tidy", "run"] * 3, "stop"]
    assert sorted(map(str, tidied)) == sorted([*ARMS] * 3)
    assert len(rows) == 3 * len(ARMS)


def test_one_seed_is_one_order() -> None:
    """The same seed repeats everything; another one does not."""
    first, _, _ = run_plan()
    again, _, _ = run_plan()
    other, _, _ = run_plan(replace(PLAN, seed=8))

    assert first.log == again.log
    assert first.log != other.log


def test_each_set_of_processes_is_fresh_and_ended() -> None:
    """One start per restart and cache, its own hash seed, and always a stop."""
    executor, _, _ = run_plan()

    turns = [entry for entry in executor.log if entry[0] in {"start", "stop"}]
    starts = turns[::2]
    assert [entry[0] for entry in turns] == ["start", "stop"] * 6
    assert sorted(str(entry[1]) for entry in starts[:2]) == ["off", "redis"]
    assert len({entry[3] for entry in starts}) == 6


def test_the_first_calls_of_a_process_do_not_count() -> None:
    """Before its rows each arm has made some calls of every workload."""
    executor, rows, _ = run_plan(replace(PLAN, restarts=1, rounds=1))

    warming = len(NAMES) * len(ARMS)
    counting = 2 * warming
    turn = {workload.name: workload.turn for workload in PLAN.workloads}
    measured = sum(row.requests // turn[row.workload] for row in rows)
    assert len(rows) == warming
    assert len(executor.calls()) == warming + counting + measured


def test_counts_are_per_request() -> None:
    """Spans and cache calls are differences, by the requests between."""
    _, _, call_counts = run_plan()

    found = {
        (one.workload, one.arm): (one.spans, one.cache_calls) for one in call_counts
    }
    assert COUNTED_REQUESTS > 1
    assert len(found) == len(call_counts) == len(NAMES) * len(ARMS)
    assert found["get_warm_redis", "otel"] == (7, CACHE_CALLS)
    assert found["get_warm_redis", "keylag"] == (0, CACHE_CALLS)


def test_an_interruption_keeps_what_there_is() -> None:
    """Ctrl-C ends the processes; rows so far have been kept."""
    executor, rows, _ = run_plan(executor=FakeExecutor(fail_after=400))

    assert executor.log[-2:] == [("stop",), ("interrupted",)]
    assert 0 < len(rows) < 400


@pytest.mark.parametrize(("requests", "expected"), [(None, [30, 20, 9]), (5, [5] * 3)])
def test_requests_may_be_given(requests: int | None, expected: list[int]) -> None:
    """One number for all workloads, or each its own."""
    plan = PLAN.with_requests(requests)

    assert [workload.requests for workload in plan.workloads] == expected


def test_a_quick_plan_is_short() -> None:
    """Few restarts and rounds, of the same calls."""
    plan = PLAN.with_size(2)

    assert (plan.restarts, plan.rounds) == (2, 2)
    assert plan.workloads == PLAN.workloads

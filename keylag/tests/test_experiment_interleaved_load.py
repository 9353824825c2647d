"""Interleaved loads: which requests count, and when all loads end."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_keystone import FakeKeystone, password_of, running

from keylag import load_target
from keylag.experiment import interleaved_load, plan_parser
from keylag.experiment.interleaved_load import SharedDeadline
from keylag.experiment.measures import seconds_under_load
from keylag.experiment.samples import MeasurementWindow, Row, rows_of_arm
from keylag.experiment.schedule import Round
from keylag.jmeter_progress import Progress
from keylag.jtl import Sample
from keylag.users_csv import COLUMNS

PLAN = """\
question = "Which?"
base = "a"
[load]
plan = "token-issue"
properties = { threads = 1, rate_per_second = 50 }
[design]
warm_up_seconds = 0.5
turn_seconds = 1.2
slice_seconds = 0.6
[decision]
method = "POST"
[arms.a]
[arms.b]
"""
ROUND = Round(3, ["b", "a"], 1)
SLICE_SECONDS = 0.6


def sample(start: float, label: str = "GET /v3/auth/tokens") -> Sample:
    """Return a successful request of 0.1 s."""
    return Sample(
        start,
        0.1,
        0.1,
        0,
        label,
        "200",
        "OK",
        "1",
        success=True,
        size_bytes=100,
        timing=None,
    )


def rows(arm: str, *starts: float) -> list[Row]:
    """Return the rows of an arm, with a measurement window from 10 to 20 s."""
    samples = [sample(start) for start in starts]
    return rows_of_arm(ROUND, arm, samples, MeasurementWindow(10, 20))


def test_requests_before_the_window_are_warm_up_and_later_ones_are_dropped() -> None:
    samples = [sample(start) for start in (20.0, 19.9, 9.9)]
    found = rows_of_arm(
        ROUND, "a", [*samples, sample(12, "setup x")], MeasurementWindow(10, 20)
    )

    assert [(r.start_seconds, r.warm_up) for r in found] == [(9.9, True), (19.9, False)]
    assert {(r.round, r.position, r.arm) for r in found} == {(3, 1, "a")}


def test_time_under_load_is_that_with_a_request_under_way() -> None:
    found = seconds_under_load([*rows("a", 10, 10.05, 12, 12.5), *rows("b", 11)])

    assert found["a", 3] == pytest.approx(0.15 + 0.1 + 0.1)
    assert found["b", 3] == pytest.approx(0.1)


def test_deadline_is_set_when_every_load_has_started_or_failed() -> None:
    deadline = SharedDeadline({"a", "b", "c"}, seconds=60)
    begun, waiting = Progress(1, 0, None), Progress(0, 0, None)

    assert not deadline.has_passed("a", begun)
    assert not deadline.has_passed("b", waiting)
    deadline.mark_started("b")
    assert deadline.not_started == {"c"}
    deadline.expire()
    deadline.mark_started("c")
    assert deadline.has_passed("a", begun)


@pytest.mark.stack
def test_most_requests_are_in_the_slices_of_their_arm(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = plan_parser.read_plan(tmp_path / "plan.toml")
    with running() as a, running() as b:
        targets = {"b": keystone_target(b, tmp_path), "a": keystone_target(a, tmp_path)}
        results = interleaved_load.run_load(plan, ROUND, targets, tmp_path / "jmeter")
    counted = {arm: [r for r in results[arm].rows if not r.warm_up] for arm in "ab"}
    every = [row for found in counted.values() for row in found]
    own = [r for r in every if r.start_seconds // SLICE_SECONDS % 2 == r.position]

    assert all(counted.values()), results
    assert len(own) > 0.75 * len(every), every
    assert all(row.success for row in every)


@pytest.mark.stack
def test_a_slice_ends_for_all_clients_of_an_arm_at_once(tmp_path: Path) -> None:
    """After a slow answer, the quick client starts no request in this slice either."""
    text = PLAN.replace("threads = 1, rate_per_second = 50", "threads = 2")
    text = text.replace("turn_seconds = 1.2", "turn_seconds = 2.4")
    (tmp_path / "plan.toml").write_text(text)
    plan = plan_parser.read_plan(tmp_path / "plan.toml")
    names = ["slow", *(f"quick {number}" for number in range(20))]
    with running() as a, running() as b:
        targets = {}
        for arm, keystone in (("b", b), ("a", a)):
            keystone.log_in_seconds = dict.fromkeys(names, 0.03) | {"slow": 0.25}
            targets[arm] = keystone_target(keystone, tmp_path, names=names)
        results = interleaved_load.run_load(plan, ROUND, targets, tmp_path / "jmeter")
    starts_after_slow = [
        sum(
            end + 0.1 < other.start_seconds < slice_end(slow)
            for other in results[arm].rows
        )
        for arm in "ab"
        for slow in results[arm].rows
        if not slow.warm_up and slow.latency_seconds >= 0.25
        if (end := slow.start_seconds + slow.latency_seconds) < slice_end(slow)
    ]

    assert starts_after_slow, results
    assert sum(starts_after_slow) == 0, starts_after_slow


def slice_end(row: Row) -> float:
    """Return the end of the slice in which a request started."""
    return (row.start_seconds // SLICE_SECONDS + 1) * SLICE_SECONDS


@pytest.mark.stack
def test_failed_load_of_one_arm_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = plan_parser.read_plan(tmp_path / "plan.toml")
    with running() as a, running() as b:
        targets = {
            "b": keystone_target(b, tmp_path, "wrong"),
            "a": keystone_target(a, tmp_path),
        }
        results = interleaved_load.run_load(plan, ROUND, targets, tmp_path / "jmeter")

    assert results["b"].rows == []
    assert "The load did not start" in results["b"].problems[0]
    assert any(not row.warm_up for row in results["a"].rows), results["a"]


def keystone_target(
    keystone: FakeKeystone,
    folder: Path,
    password: str = "",
    names: Sequence[str] = ("someone",),
) -> load_target.LoadTarget:
    """Return a fake Keystone as a target, with users of these names."""
    path = folder / f"users{keystone.server_address[1]}.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        users = csv.writer(stream)
        users.writerow(COLUMNS)
        for name in names:
            known = password or password_of(name)
            users.writerow([name, known, "D", "demo", "D"])
    return load_target.from_url(keystone.url, path, {})

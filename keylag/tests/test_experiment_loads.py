"""Loads that run side by side and take turns, and which of their requests count."""

import csv
from pathlib import Path

import pytest
from fake_keystone import FakeKeystone, password_of, running

from keylag import load_target
from keylag.experiment import loads, reading
from keylag.experiment.loads import Ending
from keylag.experiment.measures import seconds_asked
from keylag.experiment.samples import Row, Window, rows_of
from keylag.experiment.schedule import Block
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
BLOCK = Block(3, ["b", "a"], 1)
SLICE_SECONDS = 0.6


def sample(start: float, label: str = "GET /v3/auth/tokens") -> Sample:
    """Return a good request of 0.1 s."""
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
    """Return an arm's rows, counted from ten to twenty."""
    samples = [sample(start) for start in starts]
    return rows_of(BLOCK, arm, samples, Window(10, 20))


def test_what_counts_is_in_the_window() -> None:
    """What came before is warm-up; what came after, or to prepare, is left out."""
    samples = [sample(start) for start in (20.0, 19.9, 9.9)]
    found = rows_of(BLOCK, "a", [*samples, sample(12, "setup x")], Window(10, 20))

    assert [(r.start_seconds, r.warm_up) for r in found] == [(9.9, True), (19.9, False)]
    assert {(r.block, r.position, r.arm) for r in found} == {(3, 1, "a")}


def test_the_slices_of_others_are_not_an_arms_time() -> None:
    """From the first start to the last end, until another arm is asked."""
    found = seconds_asked([*rows("a", 10, 10.2, 12, 12.5), *rows("b", 11)])

    assert found["a", 3] == pytest.approx(0.3 + 0.6)
    assert found["b", 3] == pytest.approx(0.1)


def test_loads_end_together_once_all_have_begun() -> None:
    """One that never will is not waited for; an end that was called stays."""
    ending = Ending({"a", "b", "c"}, seconds=60)
    begun, waiting = Progress(1, 0, None), Progress(0, 0, None)

    assert not ending.is_over("a", begun)
    assert not ending.is_over("b", waiting)
    ending.await_no_more("b")
    assert ending.awaited == {"c"}
    ending.now()
    ending.await_no_more("c")
    assert ending.is_over("a", begun)


@pytest.mark.stack
def test_arms_take_turns_within_a_block(tmp_path: Path) -> None:
    """By the clock, most requests are in the slices of their arm, and all count."""
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = reading.read(tmp_path / "plan.toml")
    with running() as a, running() as b:
        targets = {"b": where(b, tmp_path), "a": where(a, tmp_path)}
        brought = loads.load(plan, BLOCK, targets, tmp_path / "jmeter")
    counted = {arm: [r for r in brought[arm].rows if not r.warm_up] for arm in "ab"}
    every = [row for found in counted.values() for row in found]
    own = [r for r in every if r.start_seconds // SLICE_SECONDS % 2 == r.position]

    assert all(counted.values()), brought
    assert len(own) > 0.75 * len(every), every
    assert all(row.success for row in every)


@pytest.mark.stack
def test_an_arm_that_cannot_be_loaded_leaves_the_others(tmp_path: Path) -> None:
    """What went wrong with it is told."""
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = reading.read(tmp_path / "plan.toml")
    with running() as a, running() as b:
        targets = {"b": where(b, tmp_path, "wrong"), "a": where(a, tmp_path)}
        brought = loads.load(plan, BLOCK, targets, tmp_path / "jmeter")

    assert brought["b"].rows == []
    assert "The load never began" in brought["b"].notes[0]
    assert any(not row.warm_up for row in brought["a"].rows), brought["a"]


def where(
    keystone: FakeKeystone, folder: Path, password: str = ""
) -> load_target.LoadTarget:
    """Return a Keystone of the tests, with one user."""
    path = folder / f"users{keystone.server_address[1]}.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        users = csv.writer(stream)
        users.writerow(COLUMNS)
        known = password or password_of("someone")
        users.writerow(["someone", known, "D", "demo", "D"])
    return load_target.from_url(keystone.url, path, {})

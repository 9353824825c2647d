"""The noise between slices, and what restarts add to it."""

import math
from collections.abc import Callable

import click
import numpy as np
import pytest

from keylag.experiment.plan import Decision, Design, Load, Plan
from keylag.experiment.samples import Row
from keylag.experiment.settings import Arm
from slice_noise import medians, report, restart_noise, spread_by_lag

PLAN = Plan(
    question="Which?",
    base="a",
    load=Load(plan="token-validate"),
    design=Design(turn_seconds=32, slice_seconds=1),
    decision=Decision(method="GET"),
    arms={"a": Arm(), "b": Arm()},
)
ROUNDS, CYCLES = 40, 32


def rows_with(speed: Callable[[int, str, int], float]) -> list[Row]:
    """Return five requests in each slice; `speed` has its round, arm and number."""
    return [
        Row(
            round=number,
            position=0,
            arm=arm,
            start_seconds=1000.0 * number + slice_ + request / 10,
            method="GET",
            code="200",
            success=True,
            warm_up=False,
            latency_seconds=0.1,
            server_timing={"total": math.exp(speed(number, arm, slice_)) * 0.1},
        )
        for number in range(ROUNDS)
        for slice_ in range(2 * CYCLES)
        for arm in ("ab"[slice_ % 2],)
        for request in range(5)
    ]


def test_noise_of_slices_is_told_from_that_of_restarts() -> None:
    rng = np.random.default_rng(1)
    restarts = rng.normal(0, 0.05, ROUNDS)
    noise = rng.normal(0, 0.1, (ROUNDS, 2 * CYCLES))

    def slices(number: int, _arm: str, slice_: int) -> float:
        return float(noise[number, slice_])

    def both(number: int, arm: str, slice_: int) -> float:
        return slices(number, arm, slice_) + restarts[number] * (arm == "b")

    alone = 0.1 * math.sqrt(2 / CYCLES)
    measured, expected = restart_noise(medians(rows_with(slices), PLAN), PLAN)
    assert (measured, expected) == pytest.approx((alone, alone), rel=0.3)
    measured, expected = restart_noise(medians(rows_with(both), PLAN), PLAN)
    assert (measured, expected) == pytest.approx((math.hypot(alone, 0.05), alone), 0.3)


def test_drift_makes_distant_slices_differ_more() -> None:
    rows = rows_with(lambda _round, _arm, slice_: 0.01 * slice_)
    found = spread_by_lag(medians(rows, PLAN))
    spreads = {lag: math.sqrt(np.mean(squares)) for lag, squares in found.items()}

    # The arms' own means differ by one slice.
    assert spreads[2] == pytest.approx(0.02 / math.sqrt(2))
    assert spreads[32] == pytest.approx(0.32 / math.sqrt(2))


def test_report_has_a_row_for_each_distance() -> None:
    lines = list(report(rows_with(lambda *_slice: 0.0), PLAN))

    assert lines[2] == f"| 1 | 0.0 % | {ROUNDS * (2 * CYCLES - 1)} |"
    assert len(lines) == 2 + 6 + 2
    assert lines[-1].startswith("Between rounds the ratio of two arms varies by 0.0 %")


def test_one_round_is_not_enough() -> None:
    rows = [row for row in rows_with(lambda *_slice: 0.0) if row.round == 0]

    with pytest.raises(click.ClickException, match="b has fewer than 2 rounds"):
        list(report(rows, PLAN))

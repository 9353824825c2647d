"""The arithmetic of breakdowns; expected values are computed by hand."""

import math
import random
from collections.abc import Mapping

import pytest

from keylag.breakdown import (
    Call,
    compute_breakdown,
    parse_label,
    quantile,
    throughput_per_second,
)
from keylag.jtl import Sample
from keylag.phases import CATEGORIES, OPERATIONS, PHASES, Cell
from keylag.server_timing import ServerTiming

LABEL = "POST /v3/auth/tokens password"


def sample(
    cells: Mapping[Cell, float] | None,
    *,
    label: str = LABEL,
    code: str = "201",
    elapsed: float = 0.3,
    start: float = 0.0,
) -> Sample:
    """Return a sample whose total is the sum of its cells."""
    timing = None
    if cells is not None:
        total = math.fsum(cells.values())
        counts = {"sql_statements": 6, "cache_calls": 17}
        timing = ServerTiming(total, {}, dict(cells), counts)
    success = code in {"200", "201", "204", "401"}
    return Sample(start, elapsed, 0, 0, label, code, "", "t", success, 1, timing)


def only_call(*samples: Sample) -> Call:
    """Return the only call in a breakdown of samples."""
    (call,) = compute_breakdown(samples)["calls"]
    return call


def test_shares_relate_to_the_total_time_of_all_requests() -> None:
    """Two requests of 10 and 30 ms; expected values are computed by hand."""
    call = only_call(
        sample({("sql", "roles"): 0.004, ("password_hash", "authenticate"): 0.006}),
        sample({("sql", "check_revocation"): 0.010, ("cache", "roles"): 0.020}),
    )

    assert call["wall_seconds"] is not None
    assert call["wall_seconds"]["mean"] == pytest.approx(0.020)
    assert call["phases"]["sql"]["mean"] == pytest.approx(0.007)
    assert call["phases"]["sql"]["share"] == pytest.approx(0.35)
    assert call["categories"]["sql"]["mean"] == pytest.approx(0.002)
    assert call["categories"]["revocation"]["mean"] == pytest.approx(0.005)
    assert call["categories"]["orm"] == {"mean": 0, "p50": 0, "p95": 0, "share": 0}
    assert call["operations"]["roles"]["share"] == pytest.approx(0.6)
    assert call["cells"]["cache.roles"]["mean"] == pytest.approx(0.010)
    assert call["sql_statements"] == {"mean": 6, "p95": 6}
    assert call["cache_calls"] == {"mean": 17, "p95": 17}


@pytest.mark.parametrize("seed", range(20))
def test_all_partitions_add_up_to_the_wall_time(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - test data
    cells = [(phase, operation) for phase in PHASES for operation in OPERATIONS]
    call = only_call(
        *(
            sample({cell: chance.random() for cell in chance.sample(cells, 9)})
            for _ in range(chance.randint(1, 30))
        )
    )

    assert call["wall_seconds"] is not None
    wall = call["wall_seconds"]["mean"]
    for parts in (
        call["categories"],
        call["phases"],
        call["operations"],
        call["cells"],
    ):
        assert math.fsum(part["mean"] for part in parts.values()) == pytest.approx(wall)
        assert math.fsum(part["share"] for part in parts.values()) == pytest.approx(1)
    assert tuple(call["categories"]) == CATEGORIES


def test_failed_requests_count_without_their_times() -> None:
    call = only_call(
        sample({("sql", "roles"): 0.1}, elapsed=0.2),
        sample({("sql", "roles"): 9.0}, elapsed=9.0, code="500"),
        sample({("sql", "roles"): 9.0}, elapsed=9.0, code="401"),
    )

    assert (call["requests"], call["errors"], call["refused"]) == (3, 1, 1)
    assert call["client_seconds"] == dict.fromkeys(
        ("mean", "p50", "p95", "p99", "max", "min"), pytest.approx(0.2)
    )
    assert call["phases"]["sql"]["mean"] == pytest.approx(0.1)


def test_unmeasured_requests_have_only_client_latency() -> None:
    call = only_call(sample(None), sample(None))

    assert call["unmeasured"] == 2
    assert call["client_seconds"] is not None
    assert call["wall_seconds"] is None
    assert call["categories"] == {}
    assert call["sql_statements"] is None


def test_call_with_only_failures_has_no_latency() -> None:
    call = only_call(sample(None, code="503"))

    assert call["errors"] == 1
    assert call["client_seconds"] is None


def test_setup_requests_are_counted_separately() -> None:
    result = compute_breakdown([sample({}, label=f"setup {LABEL}"), sample(None)])

    assert result["setup_requests"] == 1
    assert [call["requests"] for call in result["calls"]] == [1]


def test_inconsistent_parts_cause_a_warning() -> None:
    wrong = ServerTiming(1.0, {}, {("sql", "roles"): 0.5}, {})
    one = Sample(
        0, 1, 0, 0, LABEL, "201", "", "t", success=True, size_bytes=1, timing=wrong
    )

    assert "1 of 1 samples" in compute_breakdown([one])["warnings"][0]


def test_label_has_method_route_and_auth_method() -> None:
    assert parse_label(LABEL) == ("POST", "/v3/auth/tokens", "password")
    assert parse_label("GET /v3/auth/tokens") == ("GET", "/v3/auth/tokens", None)


@pytest.mark.parametrize(
    ("share", "expected"), [(0, 1), (0.5, 2.5), (0.95, 3.85), (1, 4)]
)
def test_quantiles_interpolate_linearly(share: float, expected: float) -> None:
    """Type 7: the position among n sorted values is 1 + (n - 1) q."""
    assert quantile([1, 2, 3, 4], share) == pytest.approx(expected)
    assert quantile([5.0], share) == 5.0


def test_throughput_covers_first_start_to_last_end() -> None:
    """Three requests from 0 to 2 s are 1.5 per second."""
    load = [sample(None, start=float(second), elapsed=1.0) for second in (0, 1)]
    load.append(sample(None, start=1.0, elapsed=0.5))

    assert throughput_per_second(load) == pytest.approx(1.5)
    assert throughput_per_second(load[:1]) is None

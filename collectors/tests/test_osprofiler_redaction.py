"""OSProfiler's points after Keylag's redaction."""

from __future__ import annotations

from typing import Any

import pytest

from keylag_otel.osprofiler_redaction import redact_values
from keylag_otel.request_aggregator import AGGREGATOR


def redacted(info: Any) -> Any:
    """Return the details of a point as a driver is given them."""
    points: list[dict[str, Any]] = []
    redact_values(points.append)({"name": "db-stop", "info": info})
    assert points[0]["name"] == "db-stop"
    return points[0]["info"]


@pytest.mark.parametrize(
    ("info", "left"),
    [
        (
            {"host": "h", "db": {"statement": "SELECT 1", "params": ["canary"]}},
            {"host": "h", "db": {"statement": "SELECT 1"}},
        ),
        (
            {
                "etype": "IntegrityError",
                "message": "Duplicate entry 'canary'",
                "db": {"original_exception": "canary", "chained_exception": "canary"},
            },
            {"etype": "IntegrityError", "db": {}},
        ),
        (
            {"function": {"name": "f", "args": "canary", "kwargs": "", "result": "r"}},
            {"function": {"name": "f"}},
        ),
        ({"keystone.phase": "cache"}, {"keystone.phase": "cache"}),
        (None, {}),
    ],
)
def test_values_are_removed(info, left) -> None:
    assert redacted(info) == left


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("/v3/auth/tokens", "/v3/auth/tokens"),
        ("/v3/OS-OAUTH1/request_token", "/v3/OS-OAUTH1/request_token"),
        ("/v3/users/4fe9c0d1e2/projects", "/v3/users/{id}/projects"),
        (f"/v3/{'x' * 32}", "/v3/{id}"),
        ("/v3/a%20b", "/v3/{id}"),
    ],
)
def test_ids_in_paths_are_replaced(path, left) -> None:
    request = {"path": path, "query": "name=canary", "method": "GET", "scheme": "http"}

    assert redacted({"request": request}) == {
        "request": {"path": left, "method": "GET", "scheme": "http"}
    }


def test_unknown_points_lose_their_details_and_count_a_fault() -> None:
    AGGREGATOR.reset()

    assert redacted({"db": "canary"}) == {"host": ""}
    assert [a["keylag.seam"] for _, a in AGGREGATOR.counter_values("faults")] == [
        "redact_values"
    ]

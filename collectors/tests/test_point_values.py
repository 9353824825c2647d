"""What OSProfiler tells its drivers once Keylag has seen it."""

from __future__ import annotations

from typing import Any

import pytest

from keylag_otel.ledger import LEDGER
from keylag_otel.point_values import without_values


def told(info: Any) -> Any:
    """Return the details of a point as a driver is given them."""
    points: list[dict[str, Any]] = []
    without_values(points.append)({"name": "db-stop", "info": info})
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
def test_no_value_is_told(info, left) -> None:
    assert told(info) == left


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
def test_a_path_is_told_without_ids(path, left) -> None:
    request = {"path": path, "query": "name=canary", "method": "GET", "scheme": "http"}

    assert told({"request": request}) == {
        "request": {"path": left, "method": "GET", "scheme": "http"}
    }


def test_what_is_not_understood_is_not_told() -> None:
    """And is counted, as every fault of ours."""
    LEDGER.reset()

    assert told({"db": "canary"}) == {"host": ""}
    assert [a["keylag.seam"] for _, a in LEDGER.tallied("faults")] == ["without_values"]

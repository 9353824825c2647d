"""A request that OSProfiler traces, read back from Redis by OSProfiler."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from keystone_client import Breakdown, Keystone, password
from keystone_site import Site
from span_collector import Span, Traces

#: The expectations are those of Keystone 30.
pytestmark = pytest.mark.newest

KEY = "key-of-this-test"
BASE = "b18bf9c7-96e3-4b7a-8d1b-1c8f4de2b0aa"
PARENT = "0c9fd3ab-6d02-4c31-9a54-0a0f7f0b6d11"
OURS = {"cache", "check_revocation", "revocation_match", "token_crypto", "orm"}

Cells = dict[tuple[str, str], float]


def signed() -> dict[str, str]:
    """Return the headers that make OSProfiler trace a request."""
    from osprofiler import _utils

    info, mac = _utils.signed_pack({"base_id": BASE, "parent_id": PARENT}, KEY)
    return {"X-Trace-Info": info.decode(), "X-Trace-HMAC": mac}


def drive(keystone: Keystone) -> tuple[Breakdown, list[Span]]:
    """Validate a token, signed and unsigned; return the trace of the signed call."""
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    traces = Traces(ALWAYS_OFF)
    token = keystone.issue(password("admin")).token
    headers = {"X-Subject-Token": token, **signed()}
    breakdown = keystone.call(
        "GET", "/v3/auth/tokens", None, token, **headers
    ).breakdown
    spans = traces.taken()
    keystone.validate(token)
    assert traces.taken() == []
    return breakdown, spans


@pytest.fixture(scope="module")
def driven(
    processes, prepared, tmp_path_factory, redis
) -> tuple[Breakdown, list[Span]]:
    site = Site(processes, prepared, tmp_path_factory.mktemp("points"))
    options = {
        "cache": {"backend": "dogpile.cache.null"},
        "profiler": {
            "enabled": True,
            "trace_sqlalchemy": True,
            "hmac_keys": KEY,
            "connection_string": f"redis://127.0.0.1:{redis}",
        },
    }
    seen: tuple[Breakdown, list[Span]] = site.run(drive, options=options)
    return seen


def shown(redis: int, form: str) -> str:
    """Return what `osprofiler trace show` prints."""
    command = [str(Path(sys.executable).parent / "osprofiler"), "trace", "show", BASE]
    source = ["--connection-string", f"redis://127.0.0.1:{redis}"]
    done = subprocess.run(
        [*command, f"--{form}", *source], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def request_point(driven, redis) -> dict[str, Any]:
    """Keylag's point of the request, which contains all others."""
    (point,) = json.loads(shown(redis, "json"))["children"]
    found: dict[str, Any] = point
    return found


def walk(point: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield point
    for child in point["children"]:
        yield from walk(child)


def name_of(point: dict[str, Any]) -> str:
    return str(point["info"]["name"])


def notified(point: dict[str, Any], which: str) -> dict[str, Any]:
    raw: dict[str, Any] = point["info"][f"meta.raw_payload.{name_of(point)}-{which}"]
    return raw


def seconds(point: dict[str, Any]) -> float:
    """Return its duration; the report's own times are whole milliseconds."""
    start, stop = (
        datetime.fromisoformat(notified(point, which)["timestamp"])
        for which in ("start", "stop")
    )
    return (stop - start).total_seconds()


def test_one_tree_has_points_of_keystone_and_keylag(request_point) -> None:
    names = {name_of(point) for point in walk(request_point)}
    (keystones,) = request_point["children"]

    assert name_of(request_point) == "request"
    assert request_point["parent_id"] == PARENT
    assert name_of(keystones) == "wsgi"
    assert names >= {"db", *OURS}


def test_statement_points_contain_no_values(driven, request_point) -> None:
    points = [point for point in walk(request_point) if name_of(point) == "db"]

    assert len(points) == driven[0].counts["sql_statements"]
    assert not any(point["children"] for point in points)


def test_the_points_add_up_to_the_metrics(driven, request_point) -> None:
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for point in walk(request_point):
        info = notified(point, "start")["info"]
        cell = info["keystone.phase"], info["keystone.operation"]
        int_below = sum(seconds(child) for child in point["children"])
        found[cell] += seconds(point) - int_below

    # Each point's ends are rounded to a microsecond.
    rounded = len(list(walk(request_point))) * 2e-6
    assert comparable(found) == pytest.approx(comparable(driven[0].cells), abs=rounded)


def comparable(cells: Cells) -> Cells:
    """Return cells in which the ORM's time is SQL's.

    OSProfiler's point of a statement holds a little of SQLAlchemy's.
    """
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (phase, operation), spent in cells.items():
        found["sql" if phase == "orm" else phase, operation] += spent
    return dict(found)


def test_html_report_names_the_calls(driven, redis) -> None:
    page = shown(redis, "html")

    assert all(f'"name": "{name}"' in page for name in OURS)


def test_a_signed_request_has_spans_under_the_same_id(driven) -> None:
    spans = driven[1]

    assert {f"{span['trace']:032x}" for span in spans} == {BASE.replace("-", "")}
    assert f"{spans[0]['parent']:016x}" == PARENT.replace("-", "")[16:]
    assert spans[0]["name"] == "GET /v3/auth/tokens"

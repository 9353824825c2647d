"""What is said of a trace: where the time went, and which statements took it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from trace_shapes import CANARY, OTEL_ID, PROJECT, ROLES, otlp

from keylag import server_timing
from keylag.trace.analysis import (
    NO_ORM,
    NO_STATEMENTS,
    OSPROFILER_ALONE,
    WAS_CUT,
    joined,
    of_server_timing,
    of_trace,
)
from keylag.trace.exchange import Exchange
from keylag.trace.explanation import Explanation, as_json
from keylag.trace.otlp import of_resource_spans
from keylag.trace.sources import read
from keylag.trace.statements import classes_of

REPORT = Path(__file__).parent / "data" / "osprofiler.json"
HEADER = (
    "total;dur=2000.0, sql_statements;desc=7, cache_calls;desc=2, "
    "sql.roles;dur=500.0, other.other;dur=1500.0"
)
TIMING = server_timing.parse(HEADER)
ANSWER = Exchange("GET", "/v3/auth/tokens", 200, HEADER, total_seconds=2.5, parts={})


@pytest.fixture(scope="module")
def found() -> Explanation:
    """The trace of `trace_shapes`, explained."""
    groups = otlp()["resourceSpans"]
    return of_trace(of_resource_spans(groups, OTEL_ID, "here"))


@pytest.fixture(scope="module")
def report() -> Explanation:
    """The recorded report of OSProfiler, explained."""
    return of_trace(read(str(REPORT)))


def test_self_times_add_up(found: Explanation) -> None:
    """Each in the cell of its span; what is inside another is not counted twice."""
    milliseconds = {cell: 1000 * spent for cell, spent in found.cells.items()}

    assert milliseconds == pytest.approx(
        {
            ("other", "other"): 71,
            ("sql", "other"): 6,
            ("cache", "other"): 5,
            ("orm", "roles"): 18,
        }
    )
    assert sum(found.categories.values()) == pytest.approx(found.total_seconds)
    assert found.call == "GET /v3/auth/tokens"


def test_statements_are_gathered_by_class(found: Explanation) -> None:
    """The class that took longest first."""
    assert [one.count for one in found.statements] == [2, 1]
    assert found.statements[0].of.fingerprint.endswith("where project.id = ?")
    assert found.statements[0].seconds == pytest.approx(0.005)
    assert found.kinds == {"SELECT": (3, pytest.approx(0.006))}
    assert found.joins == {0: (2, pytest.approx(0.005)), 1: (1, pytest.approx(0.001))}
    assert found.sql == (3, pytest.approx(0.006))


def test_cache_calls_by_layer(found: Explanation) -> None:
    """Where the trace has them, they are counted too."""
    assert [(one.layer, one.count) for one in found.cache] == [("backend", 1)]
    assert found.counts == {"sql_statements": 3, "cache_calls": 1}
    assert found.missing == ()


def test_a_span_may_stand_for_several_calls() -> None:
    """As keylag-otel makes one of a statement that is sent many times."""
    (group, *groups) = otlp()["resourceSpans"]
    for span in group["scopeSpans"][0]["spans"]:
        if span["spanId"] == "c1":
            many = {"key": "keystone.calls", "value": {"intValue": "5"}}
            span["attributes"].append(many)
    found = of_trace(of_resource_spans([group, *groups], OTEL_ID, "here"))

    assert [one.count for one in found.statements] == [2, 5]
    assert found.statements[1].slowest == pytest.approx(0.0002)
    assert found.counts["sql_statements"] == 7


def test_without_the_orm_a_miss_is_not_the_caches_time() -> None:
    """What it computes has no span there, and is other's."""
    text = json.dumps(otlp()["resourceSpans"])
    groups = json.loads(text.replace('"orm"', '"cache"'))
    found = of_trace(of_resource_spans(groups, OTEL_ID, "here"))

    assert found.cells["cache", "other"] == pytest.approx(0.005)
    assert found.cells["other", "roles"] == pytest.approx(0.018)
    assert found.missing == (NO_ORM,)


def test_a_trace_that_was_cut_says_so() -> None:
    """As keylag-otel marks the request of one."""
    text = json.dumps(otlp()["resourceSpans"])
    groups = json.loads(text.replace("http.route", "keystone.trace.cut"))

    assert of_trace(of_resource_spans(groups, OTEL_ID, "here")).missing == (WAS_CUT,)


def test_what_osprofiler_alone_cannot_tell_is_said(report: Explanation) -> None:
    """Nobody is to think that there was no cache and no hash."""
    assert report.missing == (OSPROFILER_ALONE,)
    assert "cache_calls" not in report.counts
    assert report.sql[0] == 7
    assert sum(report.cells.values()) == pytest.approx(report.total_seconds)


def test_server_timing_of_the_same_call_fills_in(
    report: Explanation, found: Explanation
) -> None:
    """But does not replace what a trace tells by itself."""
    both, whole = joined(report, ANSWER), joined(found, ANSWER)

    assert both.cells == TIMING.cells
    assert both.total_seconds == pytest.approx(2)
    assert (both.statements, both.missing) == (report.statements, ())
    assert (whole.cells, whole.total_seconds) == (found.cells, found.total_seconds)
    assert whole.totals == {
        "here": found.total_seconds,
        "Server-Timing": pytest.approx(2),
        "the client": 2.5,
    }


def test_most_answers_have_no_server_timing(report: Explanation) -> None:
    """Then the client alone has measured the call too."""
    both = joined(report, replace(ANSWER, server_timing=""))

    assert both == replace(report, totals=both.totals)
    assert list(both.totals) == [report.source, "the client"]


def test_server_timing_alone() -> None:
    """Has all the cells and no statement, and says so."""
    alone = of_server_timing("GET /v3/auth/tokens", TIMING)

    assert alone.categories["sql"] == pytest.approx(0.5)
    assert (alone.sql, alone.missing) == ((0, 0.0), (NO_STATEMENTS,))


def test_a_class_has_the_id_that_the_slow_log_gives_it() -> None:
    """However values are bound, and whatever comment is there."""
    commented = PROJECT + "/*keylag:route='GET /v3',operation='validate'*/"
    texts = (PROJECT, PROJECT.replace("%(pk_1)s", "'4fe9'"), commented, ROLES)
    classes = classes_of(texts)

    ids = [classes[text].id for text in texts]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    assert classes[ROLES].fingerprint.endswith("role.id in(?+)")
    assert (classes[ROLES].joins, classes[ROLES].kind) == (1, "SELECT")
    assert classes_of([]) == {}


def test_json_has_everything(found: Explanation) -> None:
    """In seconds, by the names of breakdown.json."""
    said = as_json(found)

    assert said["trace_id"] == OTEL_ID
    assert said["wall_seconds"] == pytest.approx(0.1)
    assert said["cells"]["orm.roles"] == pytest.approx(0.018)
    assert said["statements"][0]["count"] == 2
    inner = said["spans"][0]["children"][2]["children"][0]
    assert inner["attributes"]["statement"] == said["statements"][1]["id"]
    assert CANARY not in repr(said)

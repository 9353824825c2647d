"""Explanations of traces: self times, statements, cache calls, limitations."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sample_trace import CANARY, OTEL_ID, PROJECT, ROLES, otlp

from keylag import server_timing
from keylag.trace.analysis import (
    NO_ORM,
    NO_STATEMENTS,
    OSPROFILER_ONLY,
    TRUNCATED_TRACE,
    add_client_view,
    explain_server_timing,
    explain_trace,
)
from keylag.trace.explanation import Explanation, as_json
from keylag.trace.http_exchange import HttpExchange
from keylag.trace.otlp import parse_resource_spans
from keylag.trace.sources import read_trace
from keylag.trace.statements import classify_statements

REPORT = Path(__file__).parent / "data" / "osprofiler.json"
HEADER = (
    "total;dur=2000.0, sql_statements;desc=7, cache_calls;desc=2, "
    "sql.roles;dur=500.0, other.other;dur=1500.0"
)
TIMING = server_timing.parse_server_timing(HEADER)
ANSWER = HttpExchange(
    "GET", "/v3/auth/tokens", 200, HEADER, total_seconds=2.5, parts={}
)


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    """The explanation of the sample trace."""
    groups = otlp()["resourceSpans"]
    return explain_trace(parse_resource_spans(groups, OTEL_ID, "here"))


@pytest.fixture(scope="module")
def report() -> Explanation:
    """The explanation of the recorded report of OSProfiler."""
    return explain_trace(read_trace(str(REPORT)))


def test_self_times_add_up_to_the_total(explanation: Explanation) -> None:
    milliseconds = {cell: 1000 * spent for cell, spent in explanation.cells.items()}

    assert milliseconds == pytest.approx(
        {
            ("other", "other"): 71,
            ("sql", "other"): 6,
            ("cache", "other"): 5,
            ("orm", "roles"): 18,
        }
    )
    assert sum(explanation.categories.values()) == pytest.approx(
        explanation.total_seconds
    )
    assert explanation.call == "GET /v3/auth/tokens"


def test_statements_are_summarized_by_class(explanation: Explanation) -> None:
    assert [one.count for one in explanation.statements] == [2, 1]
    assert explanation.statements[0].statement_class.fingerprint.endswith(
        "where project.id = ?"
    )
    assert explanation.statements[0].seconds == pytest.approx(0.005)
    assert explanation.kinds == {"SELECT": (3, pytest.approx(0.006))}
    assert explanation.joins == {
        0: (2, pytest.approx(0.005)),
        1: (1, pytest.approx(0.001)),
    }
    assert explanation.sql == (3, pytest.approx(0.006))


def test_cache_calls_are_counted_by_layer(explanation: Explanation) -> None:
    assert [(one.layer, one.count) for one in explanation.cache] == [("backend", 1)]
    assert explanation.counts == {"sql_statements": 3, "cache_calls": 1}
    assert explanation.limitations == ()


def test_collapsed_span_counts_all_its_calls() -> None:
    (group, *groups) = otlp()["resourceSpans"]
    for span in group["scopeSpans"][0]["spans"]:
        if span["spanId"] == "c1":
            many = {"key": "keystone.calls", "value": {"intValue": "5"}}
            span["attributes"].append(many)
    explanation = explain_trace(parse_resource_spans([group, *groups], OTEL_ID, "here"))

    assert [one.count for one in explanation.statements] == [2, 5]
    assert explanation.statements[1].slowest_seconds == pytest.approx(0.0002)
    assert explanation.counts["sql_statements"] == 7


def test_without_orm_spans_parents_count_as_other() -> None:
    """The computation after a cache miss has no span there."""
    text = json.dumps(otlp()["resourceSpans"])
    groups = json.loads(text.replace('"orm"', '"cache"'))
    explanation = explain_trace(parse_resource_spans(groups, OTEL_ID, "here"))

    assert explanation.cells["cache", "other"] == pytest.approx(0.005)
    assert explanation.cells["other", "roles"] == pytest.approx(0.018)
    assert explanation.limitations == (NO_ORM,)


def test_truncated_trace_has_a_limitation() -> None:
    text = json.dumps(otlp()["resourceSpans"])
    groups = json.loads(text.replace("http.route", "keystone.trace.cut"))

    assert explain_trace(parse_resource_spans(groups, OTEL_ID, "here")).limitations == (
        TRUNCATED_TRACE,
    )


def test_osprofiler_only_trace_has_a_limitation(report: Explanation) -> None:
    assert report.limitations == (OSPROFILER_ONLY,)
    assert "cache_calls" not in report.counts
    assert report.sql[0] == 7
    assert sum(report.cells.values()) == pytest.approx(report.total_seconds)


def test_server_timing_completes_a_limited_trace(
    report: Explanation, explanation: Explanation
) -> None:
    merged, complete = (
        add_client_view(report, ANSWER),
        add_client_view(explanation, ANSWER),
    )

    assert merged.cells == TIMING.cells
    assert merged.total_seconds == pytest.approx(2)
    assert (merged.statements, merged.limitations) == (report.statements, ())
    assert (complete.cells, complete.total_seconds) == (
        explanation.cells,
        explanation.total_seconds,
    )
    assert complete.totals_by_source == {
        "here": explanation.total_seconds,
        "Server-Timing": pytest.approx(2),
        "the client": 2.5,
    }


def test_client_view_without_server_timing_adds_one_total(report: Explanation) -> None:
    merged = add_client_view(report, replace(ANSWER, server_timing=""))

    assert merged == replace(report, totals_by_source=merged.totals_by_source)
    assert list(merged.totals_by_source) == [report.source, "the client"]


def test_server_timing_has_cells_but_no_statements() -> None:
    alone = explain_server_timing("GET /v3/auth/tokens", TIMING)

    assert alone.categories["sql"] == pytest.approx(0.5)
    assert (alone.sql, alone.limitations) == ((0, 0.0), (NO_STATEMENTS,))


def test_class_id_ignores_placeholders_and_comments() -> None:
    commented = PROJECT + "/*keylag:route='GET /v3',operation='validate'*/"
    texts = (PROJECT, PROJECT.replace("%(pk_1)s", "'4fe9'"), commented, ROLES)
    classes = classify_statements(texts)

    ids = [classes[text].id for text in texts]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    assert classes[ROLES].fingerprint.endswith("role.id in(?+)")
    assert classes[ROLES].statement.endswith("WHERE role.id IN (?…)")
    assert (classes[ROLES].joins, classes[ROLES].kind) == (1, "SELECT")
    assert classify_statements([]) == {}


def test_json_has_all_fields_and_no_values(explanation: Explanation) -> None:
    document = as_json(explanation)

    assert document["trace_id"] == OTEL_ID
    assert document["wall_seconds"] == pytest.approx(0.1)
    assert document["cells"]["orm.roles"] == pytest.approx(0.018)
    assert document["statements"][0]["count"] == 2
    inner = document["spans"][0]["children"][2]["children"][0]
    assert inner["attributes"]["statement"] == document["statements"][1]["id"]
    assert CANARY not in repr(document)

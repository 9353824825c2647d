"""The page of a diagnosis, with charts of the evidence."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from diagnosed import HEALTHY, VALIDATION, healthy_calls, judge, make_facts

from keylag.diagnosis.facts import Facts
from keylag.diagnosis.html import Report, render_html, write_html
from keylag.diagnosis.prometheus import Prometheus, Sample
from keylag.diagnosis.ranking import Diagnosis
from keylag.diagnosis.trends import TIMES, Trends, read_trends

GET = {
    "http_request_method": "GET",
    "keystone_auth_method": "",
    "http_response_status_code": "200",
}
RATE = 10.0
STOPPED = 1450.0
"""The middle of the window: memcached stops."""


@dataclass(frozen=True)
class Recorded(Prometheus):
    """A Prometheus that knows validations, and a memcached that stopped."""

    def query_range_all(
        self, queries: Mapping[str, str], times: Sequence[float]
    ) -> dict[str, dict[float, tuple[Sample, ...]]]:
        return {name: {at: tuple(answer(name, at)) for at in times} for name in queries}


def answer(name: str, at: float) -> Sequence[Sample]:
    statements = 61.0 if at > STOPPED else 0.0
    known = {
        "calls": [Sample(GET, RATE)],
        "statements": [Sample(GET, RATE * statements)],
        "round_trips": [Sample(GET, RATE * 14)],
        "cells": [
            Sample({**GET, "keystone_phase": p, "keystone_operation": "validate"}, 0.5)
            for p in ("sql", "cache")
        ],
        "memcached_up": [Sample({}, float(at <= STOPPED))],
        "cache_errors": [Sample({}, 5.0)] if at > STOPPED else [],
    }
    return known.get(name, HEALTHY.get(name, ()))


def stopped_memcached() -> Diagnosis:
    more = {("sql", "validate"): 0.03, ("orm", "validate"): 0.03}
    facts = make_facts(
        healthy_calls(VALIDATION, more, statements=30.5),
        memcached_up=0.5,
        cache_errors=2.5,
    )
    return judge(with_queries(facts))


def with_queries(facts: Facts) -> Facts:
    return replace(facts, queries={name: f"sum({name})" for name in facts.answers})


@pytest.fixture(scope="module")
def trends() -> Trends:
    return read_trends(Recorded(""), stopped_memcached())


def lines(trends: Trends, text: str) -> list[Sequence[tuple[float, float]]]:
    diagnosis = stopped_memcached()
    (finding,) = diagnosis.findings
    (one,) = (one for one in finding.suspicion.evidence if one.text == text)
    return trends.lines(finding.rule, one, diagnosis.facts)


def test_sum_is_drawn_over_the_whole_window(trends: Trends) -> None:
    (line,) = lines(trends, "memcached answers")

    assert len(line) == TIMES
    assert {value for at, value in line if at <= STOPPED} == {1.0}
    assert {value for at, value in line if at > STOPPED} == {0.0}


def test_judged_evidence_has_a_gap_while_the_cause_is_not_seen(trends: Trends) -> None:
    (line,) = lines(trends, "SQL statements of GET")

    assert {round(value, 6) for _, value in line} == {61.0}
    assert min(at for at, _ in line) > STOPPED


def test_page_charts_the_evidence_beside_what_is_expected(trends: Trends) -> None:
    page = render_html([Report("", stopped_memcached(), trends)])

    charts = re.findall(r'<svg class="chart".*?</svg>', page, re.DOTALL)
    assert len(charts) >= 3
    assert all('class="measured"' in one for one in charts)
    assert any('class="expected"' in one for one in charts)
    assert "<code>sum(memcached_up)</code>" in page


def test_page_has_all_parts_of_a_finding(trends: Trends) -> None:
    page = render_html([Report("", stopped_memcached(), trends)])

    for text in (
        "1. A cache server does not answer",
        "It costs",
        "expected 1",
        "[cache] socket_timeout = 0.25",
        "Risk: A server that is only slow",
        "each call saves",
        "Runner-up:",
        "of the dashboard <em>cache</em>",
        "proxysql",
    ):
        assert text in page


def test_page_needs_no_other_file(trends: Trends, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "diagnosis.html"

    write_html([Report("<b>", stopped_memcached(), trends)], path)

    page = path.read_text(encoding="utf-8")
    assert not re.search(r"src=|@import|https?://|<script", page)
    assert "&lt;b&gt;" in page
    assert "<b>\n" not in page


def test_page_links_to_grafana(trends: Trends) -> None:
    page = render_html([Report("", stopped_memcached(), trends)], "http://grafana:3000")

    assert 'href="http://grafana:3000/d/keylag-cache?from=1000000&amp;to=19' in page


def test_page_without_charts_says_why() -> None:
    page = render_html([Report("run", stopped_memcached(), no_charts="No charts.")])

    assert "No charts." in page
    assert '<svg class="chart"' not in page


def test_healthy_page() -> None:
    page = render_html([Report("", judge(make_facts()))])

    assert "<h1>No cause found</h1>" in page
    assert "<h3>Evidence</h3>" not in page

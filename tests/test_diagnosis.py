"""`keylag diagnose` on a real stack, with a real Prometheus."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from traffic import SentCalls

from keylag.commands import diagnose
from keylag.diagnosis.facts import Window
from keylag.diagnosis.from_prometheus import read_case
from keylag.diagnosis.measurements import MEASUREMENTS, SOURCES
from keylag.diagnosis.prometheus import Prometheus
from keylag.diagnosis.promql import evidence_query
from keylag.diagnosis.ranking import Diagnosis, Finding
from keylag.diagnosis.reading import fill
from keylag.diagnosis.registry import RULES
from keylag.diagnosis.rule import Evidence, PerCall, Suspicion
from keylag.diagnosis.serving import COST, EVERY_SECONDS
from keylag.diagnosis.trends import read_trends
from keylag.stack import Stack

pytestmark = pytest.mark.stack
SCRAPED_SECONDS = EVERY_SECONDS + 30
"""After this time Prometheus has a diagnosis of the calls."""
SETTLED_SECONDS = 5
"""After this time all scrapes have ended that began before, so queries agree."""


@pytest.fixture(scope="module")
def document(stack: Stack, sent: SentCalls) -> dict[str, Any]:
    """The diagnosis of all calls that were sent."""
    words = [f"--state={stack.folder}", "--since=30m", "--output=json"]
    result = CliRunner().invoke(diagnose.command, words)
    assert result.exit_code in {0, 1}, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_each_cause_is_judged_or_unknown(document: dict[str, Any]) -> None:
    explained = [
        one["id"] for found in document["findings"] for one in found["explained_away"]
    ]
    named = [
        one["id"]
        for part in ("findings", "unlikely", "unknown")
        for one in document[part]
    ]

    assert sorted([*named, *explained]) == sorted(RULES)


def test_only_sources_that_the_stack_lacks_are_missing(
    document: dict[str, Any],
) -> None:
    missing = {one["missing"] for one in document["unknown"]}

    assert missing <= {"proxysql", "services", "probe"}


def test_calls_are_those_that_were_sent(
    document: dict[str, Any], sent: SentCalls
) -> None:
    methods = {one["method"] for one in document["window"]["calls"]}

    assert {"GET", "POST"} <= methods <= set(sent.jmeter)


def test_evidence_has_its_query(document: dict[str, Any]) -> None:
    evidence = [one for found in document["findings"] for one in found["evidence"]]

    assert all(one["promql"] for one in evidence)


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_prometheus_accepts_each_query(stack: Stack, name: str) -> None:
    query = fill(MEASUREMENTS[name].promql, 900)

    answer = requests.get(
        f"{stack.url('prometheus')}/api/v1/query", params={"query": query}, timeout=10
    )

    assert answer.json()["status"] == "success", answer.text


@pytest.mark.parametrize("name", ["keylag-otel", "call histograms", "host", "mysql"])
def test_stack_has_the_sources(stack: Stack, sent: SentCalls, name: str) -> None:
    query = fill(f"count({SOURCES[name].witness})", 900)

    answer = requests.get(
        f"{stack.url('prometheus')}/api/v1/query", params={"query": query}, timeout=10
    )

    assert answer.json()["data"]["result"]


def test_page_charts_what_the_rules_ask(stack: Stack, sent: SentCalls) -> None:
    prometheus = Prometheus(stack.url("prometheus"))
    end = time.time()
    case = read_case(prometheus, Window(end - 1800, end))
    nothing = Suspicion({}, [])
    every = [Finding(one, nothing, 0.0, 0.0, 0.0, {}) for one in RULES.values()]

    trends = read_trends(prometheus, Diagnosis(case, [], every, [], []))

    slices = [one.facts for one in trends.slices.values()]
    latest = trends.slices[max(trends.slices)].facts
    assert {one.kind[0] for each in slices for one in each.calls} >= {"GET", "POST"}
    assert latest.number("workers") == case.facts.number("workers")
    assert {"validations"} <= case.facts.answers.keys()


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("statements", "statements"),
        ("round_trips", "round_trips"),
        ("cells", "seconds"),
    ],
)
def test_query_of_evidence_returns_its_number(
    stack: Stack, sent: SentCalls, name: str, attribute: str
) -> None:
    prometheus = Prometheus(stack.url("prometheus"))
    end = time.time() - SETTLED_SECONDS
    facts = read_case(prometheus, Window(end - 1800, end)).facts
    for calls in facts.served:
        value = getattr(calls, attribute)
        one = Evidence("", value, "", name, per_call=PerCall(calls.kind))

        (found,) = prometheus.query(evidence_query(one, facts), end)

        assert found.value == pytest.approx(value)


def test_html_is_one_page(stack: Stack, sent: SentCalls, tmp_path: Path) -> None:
    words = [f"--state={stack.folder}", "--since=30m", "--output=html"]

    result = CliRunner().invoke(diagnose.command, [*words, f"--out={tmp_path}"])

    assert result.exit_code in {0, 1}, result.output
    page = (tmp_path / "diagnosis.html").read_text(encoding="utf-8")
    assert "Token calls of 30 minutes" in page
    assert "There are no charts" not in page


def test_prometheus_has_the_findings(stack: Stack, sent: SentCalls) -> None:
    url = f"{stack.url('prometheus')}/api/v1/query"
    deadline = time.monotonic() + SCRAPED_SECONDS
    judged: list[dict[str, Any]] = []
    while len(judged) < len(RULES) and time.monotonic() < deadline:
        answer = requests.get(url, params={"query": COST}, timeout=10).json()
        judged = answer["data"]["result"]
        time.sleep(1)

    labels = {(one["metric"]["id"], one["metric"]["name"]) for one in judged}
    assert labels == {(one.id, one.name) for one in RULES.values()}
    assert {one["metric"]["job"] for one in judged} == {"keylag-diagnosis"}


def test_window_without_calls_cannot_be_judged(stack: Stack) -> None:
    words = [f"--state={stack.folder}", "--from=3d", "--to=2d"]

    result = CliRunner().invoke(diagnose.command, words)

    assert result.exit_code == diagnose.CANNOT_SAY
    assert "No token call ended in this window" in result.output


def test_unreachable_prometheus_leaves_all_unknown() -> None:
    words = ["--prometheus=http://127.0.0.1:9"]

    result = CliRunner().invoke(diagnose.command, words)

    assert result.exit_code == diagnose.CANNOT_SAY
    assert "Prometheus does not answer at http://127.0.0.1:9" in result.output

"""Diagnoses of one call: of its Server-Timing header, or of its trace."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sample_trace import otlp

from keylag.commands import diagnose
from keylag.diagnosis.case import Case
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.facts import bucket_quantile
from keylag.diagnosis.from_call import ONE_CALL, header_facts, trace_facts
from keylag.diagnosis.ranking import diagnose as diagnose_case
from keylag.errors import WrongUsageError
from keylag.trace.model import RawSpan, Trace, build_trace

UNCACHED = (
    "total;dur=92, sql_statements;desc=60, cache_calls;desc=0, sql.validate;dur=50,"
    " orm.validate;dur=40, policy.enforce;dur=2"
)
WARM = (
    "total;dur=5, sql_statements;desc=0, cache_calls;desc=14, cache.validate;dur=3,"
    " policy.enforce;dur=1, wsgi.other;dur=1"
)
MILLISECOND = 1_000_000


def run_command(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(diagnose.command, [*words], input=stdin)


def document(*words: str, stdin: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        run_command(*words, "--output=json", stdin=stdin).stdout
    )
    return found


def test_header_without_cache_calls_has_no_cache() -> None:
    found = document(f"--server-timing={UNCACHED}")

    assert [one["id"] for one in found["findings"]] == ["C1"]
    assert found["limitations"] == [ONE_CALL]
    assert found["findings"][0]["dashboard"] is None


def test_warm_call_is_healthy() -> None:
    result = run_command(f"--server-timing={WARM}")

    assert result.exit_code == 0
    assert ONE_CALL in result.output
    assert "No cause found" in result.output


def test_rules_about_rates_and_servers_are_unknown() -> None:
    found = document(f"--server-timing={WARM}")

    unknown = {one["id"] for one in found["unknown"]}
    assert {"C2", "C5", "D2", "H2", "H3", "R3", "W1", "W2", "N1", "M1"} <= unknown
    assert {one["id"] for one in found["unlikely"]} >= {"A1", "A2", "C1", "L1"}


@pytest.mark.parametrize("field", ["Server-Timing", "server-timing"])
def test_whole_response_from_standard_input(field: str) -> None:
    response = f"HTTP/1.1 200 OK\r\n{field}: {UNCACHED}\r\nVary: x\r\n\r\n{{}}"

    found = document("--server-timing=-", stdin=response)

    assert [one["id"] for one in found["findings"]] == ["C1"]


def test_page_of_one_call(tmp_path: Path) -> None:
    words = [f"--server-timing={UNCACHED}", "--output=html", f"--out={tmp_path}"]

    result = run_command(*words)

    assert result.output.strip() == str(tmp_path / "diagnosis.html")
    page = (tmp_path / "diagnosis.html").read_text(encoding="utf-8")
    assert "There are no charts" in page
    assert ONE_CALL in page


@pytest.mark.parametrize("text", ["", "total;dur=5", "cdn;dur=3", "total;dur=x"])
def test_other_text_is_wrong_usage(text: str) -> None:
    with pytest.raises(WrongUsageError, match="breakdown"):
        header_facts(text)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (None, ("POST", "password")),
        ("application-credential", ("POST", "application_credential")),
        ("revoke", ("DELETE", "")),
    ],
)
def test_kind_of_call(call: str | None, kind: tuple[str, str]) -> None:
    header = (
        "total;dur=300, password_hash.authenticate;dur=299, token_crypto.issue;dur=1"
    )

    (calls,) = header_facts(header, call).calls

    assert calls.kind == kind
    assert calls.per_second == pytest.approx(1 / 0.3)


@pytest.mark.parametrize(
    "words",
    [
        ["--server-timing=x", "--trace=y"],
        ["--call=validate"],
        ["--trace-store=redis://x"],
        ["--out=x"],
    ],
)
def test_options_that_do_not_fit_are_refused(words: list[str]) -> None:
    result = run_command(*words)

    assert result.exit_code == 2
    assert "Error:" in result.output


def trace(cache_ms: float, **attributes: str) -> Trace:
    """Return a validation with three calls to the cache, each as long."""
    phases = [("cache", "validate")] * 3 + [("policy", "enforce"), ("orm", "validate")]
    backend = {"keystone.cache.layer": "backend", **attributes}
    spans, end = [], 0.0
    for number, (phase, operation) in enumerate(phases):
        start, end = end, end + (cache_ms if phase == "cache" else 1)
        cell = {"keystone.phase": phase, "keystone.operation": operation}
        more = backend if phase == "cache" else {}
        spans.append(raw(str(number), "root", start, end, {**cell, **more}))
    root = raw("root", "", 0.0, end, {"http.request.method": "GET"})
    return build_trace([root, *spans], "t", "test")


def raw(
    own: str, parent: str, start: float, end: float, attributes: dict[str, str]
) -> RawSpan:
    nanoseconds = round(start * MILLISECOND), round(end * MILLISECOND)
    return RawSpan(own, parent, "span", *nanoseconds, attributes)


def found(one: Trace) -> list[str]:
    facts = trace_facts(one)
    case = Case(facts, Expected.shipped(facts))
    return [finding.rule.id for finding in diagnose_case(case).findings]


def test_trace_has_single_calls_to_the_cache() -> None:
    facts = trace_facts(trace(cache_ms=20))

    buckets = facts.buckets("cache_call_buckets")
    assert max(buckets.values()) == pytest.approx(3 / 0.062)
    assert bucket_quantile(buckets, 0.1) == pytest.approx(0.02)
    assert facts.number("cache_call_seconds") == pytest.approx(0.06 / 0.062)
    assert facts.calls[0].round_trips == 3


def test_far_cache_is_found_in_a_trace() -> None:
    assert found(trace(cache_ms=20)) == ["C4"]
    assert found(trace(cache_ms=0.2)) == []


def test_failed_cache_is_found_in_a_trace() -> None:
    failed = trace(cache_ms=1000, **{"error.type": "timeout"})

    assert found(failed) == ["C2"]


def test_trace_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(otlp()), encoding="utf-8")

    result = document(f"--trace={file}")

    assert result["limitations"][0] == ONE_CALL
    judged = {one["id"] for one in (*result["findings"], *result["unlikely"])}
    assert {"C4", "D1"} <= judged


def test_trace_without_phases_is_refused() -> None:
    one = build_trace([raw("root", "", 0, 9, {})], "t", "test")

    with pytest.raises(WrongUsageError, match="keylag-otel"):
        trace_facts(one)

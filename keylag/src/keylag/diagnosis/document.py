"""A diagnosis as JSON."""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from keylag.diagnosis import wording
from keylag.diagnosis.facts import Kind
from keylag.diagnosis.impact import UNKNOWN_CALLERS, callers, has_unknown_callers
from keylag.diagnosis.measurements import SOURCES
from keylag.diagnosis.promql import evidence_query
from keylag.diagnosis.quantile_shares import quantile_shares
from keylag.diagnosis.ranking import Diagnosis, Finding
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving

DASHBOARD_PREFIX: Final = "keylag-"


def as_json(diagnosis: Diagnosis, grafana: str = "") -> dict[str, Any]:
    """Return the document; `grafana` is the URL that links to dashboards begin with."""
    window = diagnosis.facts.window
    return {
        "healthy": diagnosis.is_healthy,
        "window": {
            "start": window.start,
            "end": window.end,
            "seconds": window.seconds,
            "token_seconds_per_second": diagnosis.facts.token_seconds,
            "calls": [
                {
                    "method": one.kind[0],
                    "auth_method": one.kind[1],
                    "outcome": one.outcome,
                    "per_second": one.per_second,
                    "mean_seconds": one.seconds,
                    "p50_seconds": one.quantile(0.5),
                    "p95_seconds": one.quantile(0.95),
                }
                for one in diagnosis.facts.calls
            ],
        },
        "limitations": list(diagnosis.facts.limitations),
        "findings": [
            _finding(diagnosis, finding, rank, grafana)
            for rank, finding in enumerate(diagnosis.findings, start=1)
        ],
        "unexplained": [
            {
                "call": kind_key(one.kind),
                "seconds": one.seconds,
                "expected_seconds": one.expected,
                "category": one.category,
                "category_seconds": one.category_seconds,
            }
            for one in diagnosis.unexplained
        ],
        "failing": [
            {
                "call": kind_key(one.kind),
                "per_second": one.per_second,
                "share": one.share,
                "seconds": one.seconds,
                "refused_commits_per_second": one.refused_commits_per_second,
            }
            for one in diagnosis.failing
        ],
        "unknown": [
            {"id": one.rule.id, "missing": one.why} for one in diagnosis.unknown
        ],
        "unlikely": [
            {"id": one.rule.id, "why": one.why, "share_of_wall": one.share}
            for one in diagnosis.unlikely
        ],
    }


def _finding(
    diagnosis: Diagnosis, finding: Finding, rank: int, grafana: str
) -> dict[str, Any]:
    rule, suspicion = finding.rule, finding.suspicion
    return {
        "id": rule.id,
        "name": rule.name,
        "cause": finding.cause,
        "rank": rank,
        "cost_seconds_per_second": finding.cost,
        "share_of_wall": finding.share,
        "calls": {
            kind_key(kind): _call(diagnosis, finding, kind, saving)
            for kind, saving in suspicion.savings.items()
        },
        "callers": [
            {
                "call": kind_key(one.kind),
                "caller": one.name,
                "calls_per_second": one.per_second,
                "cost_seconds_per_second": one.cost,
            }
            for one in callers(diagnosis.case, finding)
        ],
        "unknown_callers": UNKNOWN_CALLERS if has_unknown_callers(finding) else None,
        "evidence": [_evidence(diagnosis, one) for one in suspicion.evidence],
        "explained_away": [
            {"id": one.rule.id, "why": one.why} for one in finding.explained
        ],
        "runner_up": _runner_up(diagnosis, finding),
        "fix": [
            {
                "file": one.file,
                "line": one.line,
                "risk": one.risk,
                "present": _present(diagnosis, one),
            }
            for one in rule.fixes
        ],
        "predicted_gain_seconds_per_call": _mean_saving(diagnosis, finding),
        "experiment": None,
        "dashboard": dashboard_url(rule, diagnosis, grafana)
        if wording.has_time(diagnosis.facts)
        else None,
    }


def kind_key(kind: Kind) -> str:
    """Return the key of a kind of calls: "POST password"."""
    return " ".join(filter(None, kind))


def _call(
    diagnosis: Diagnosis, finding: Finding, kind: Kind, saving: Saving
) -> dict[str, Any]:
    shares = quantile_shares(diagnosis.case, kind, saving)
    return {
        "saving_seconds": [saving.low, saving.mid, saving.high],
        "share": finding.shares.get(kind),
        "share_of_p50": shares.get(0.5),
        "share_of_p95": shares.get(0.95),
    }


def _present(diagnosis: Diagnosis, fix: Fix) -> dict[str, Any] | None:
    """Return the setting of a fix's option; None if no file has it."""
    found = fix.option and diagnosis.facts.configuration.settings.get(fix.option)
    if not found:
        return None
    return {"value": found.shown, "file": str(found.file), "line": found.line}


def _mean_saving(diagnosis: Diagnosis, finding: Finding) -> list[float] | None:
    """Return the bounds and the middle of what a mean token call saves."""
    saved = [
        (calls.per_second, saving)
        for kind, saving in finding.suspicion.savings.items()
        if (calls := diagnosis.facts.find(kind))
    ]
    calls_per_second = sum(rate for rate, _ in saved)
    if not calls_per_second:
        return None
    return [
        sum(rate * getattr(saving, bound) for rate, saving in saved) / calls_per_second
        for bound in ("low", "mid", "high")
    ]


def _evidence(diagnosis: Diagnosis, one: Evidence) -> dict[str, Any]:
    return {
        "text": one.text,
        "promql": evidence_query(one, diagnosis.facts),
        "value": one.value,
        "baseline": one.baseline,
        "unit": one.unit,
    }


def _runner_up(diagnosis: Diagnosis, finding: Finding) -> dict[str, str] | None:
    second = diagnosis.runner_up(finding)
    return {"id": second.rule.id, "why": second.why} if second else None


def dashboard_url(rule: Rule, diagnosis: Diagnosis, grafana: str) -> str:
    """Return the URL of the dashboard that shows a rule's evidence."""
    window = diagnosis.facts.window
    period = f"from={window.start * 1000:.0f}&to={window.end * 1000:.0f}"
    return f"{grafana.rstrip('/')}/d/{DASHBOARD_PREFIX}{quote(rule.board)}?{period}"


def missing_sources(diagnosis: Diagnosis) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each missing source, what installs it, and the ids of rules without it."""
    names = dict.fromkeys(one.why for one in diagnosis.unknown)
    for name in names:
        ids = [one.rule.id for one in diagnosis.unknown if one.why == name]
        yield name, SOURCES[name].install, ids

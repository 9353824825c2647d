"""Recording rules and alerts: what panels ask of the past, and what wakes somebody."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from keylag_dashboards.alerts import ALERTS, Alert
from keylag_dashboards.blocks import MATCHERS
from keylag_dashboards.promql import expand

RUNBOOK: Final = "docs/runbook.md"
WINDOWS: Final = ("5m", "30m", "1h", "6h")
"""Over which the share of calls that were not in time is recorded."""

_COUNT: Final = "http_server_request_duration_seconds_count"
_BUCKET: Final = "http_server_request_duration_seconds_bucket"
_METHOD: Final = "job, http_request_method"


@dataclass(frozen=True)
class Recorded:
    """A series that Prometheus keeps: its name, how it is computed, its own labels."""

    name: str
    query: str
    labels: Mapping[str, str]


def recorded() -> Iterator[Recorded]:
    """Yield what is recorded: rates, blocks, and the share that was not in time."""
    yield Recorded(
        "keylag:token_calls:rate5m",
        f"sum by ({_METHOD}) (rate({_COUNT}{{ALL_TOKENS}}[5m]))",
        {},
    )
    for block, matchers in MATCHERS.items():
        yield Recorded(
            "keylag:token_block_seconds:rate5m",
            f"""sum by ({_METHOD}) (rate(keystone_request_phase_time_seconds_total{{
                ALL_TOKENS, {matchers}}}[5m]))""",
            {"block": block},
        )
    for window in WINDOWS:
        yield Recorded(
            f"keylag:token_calls_not_in_time:ratio_rate{window}",
            f"""1 - sum by (job) (rate({_BUCKET}{{
                IN_TIME, http_response_status_code!~"5.."}}[{window}]))
            / sum by (job) (rate({_COUNT}{{ALL_TOKENS}}[{window}]))""",
            {},
        )


def document() -> dict[str, Any]:
    """Return the file that Prometheus loads."""
    return {
        "groups": [
            {"name": "keylag-recorded", "rules": [*map(_record, recorded())]},
            {"name": "keylag-alerts", "rules": [*map(_alert, ALERTS)]},
        ]
    }


def _record(one: Recorded) -> dict[str, Any]:
    labels = {"labels": dict(one.labels)} if one.labels else {}
    return {"record": one.name, "expr": expand(one.query), **labels}


def _alert(one: Alert) -> dict[str, Any]:
    return {
        "alert": one.name,
        "expr": expand(one.query),
        "for": one.wait,
        "labels": {"severity": one.severity},
        "annotations": {
            "summary": one.summary,
            "description": one.description,
            "runbook": f"{RUNBOOK}#{one.name.lower()}",
        },
    }

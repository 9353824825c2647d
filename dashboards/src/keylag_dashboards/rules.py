"""Recording rules and alerts: what panels ask of the past, and what wakes somebody."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from keylag_dashboards.alerts import ALERTS
from keylag_dashboards.categories import MATCHERS
from keylag_dashboards.config import RUNBOOK_URL
from keylag_dashboards.model import Alert
from keylag_dashboards.promql import expand
from keylag_dashboards.telemetry_alerts import KEYSTONE_METRICS, MEMORY

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
    """Yield every recording rule, those of token calls first."""
    yield from _token_calls()
    yield from _telemetry()


def _token_calls() -> Iterator[Recorded]:
    """Yield rates, categories, and the share that was not in time."""
    yield Recorded(
        "keylag:token_calls:rate5m",
        f"sum by ({_METHOD}) (rate({_COUNT}{{ALL_TOKENS}}[5m]))",
        {},
    )
    for category, matchers in MATCHERS.items():
        yield Recorded(
            "keylag:token_category_seconds:rate5m",
            f"""sum by ({_METHOD}) (rate(keystone_request_phase_time_seconds_total{{
                ALL_TOKENS, {matchers}}}[5m]))""",
            {"category": category},
        )
    for window in WINDOWS:
        yield Recorded(
            f"keylag:token_calls_not_in_time:ratio_rate{window}",
            _not_in_time(window),
            {},
        )


def _not_in_time(window: str) -> str:
    """Return the share of calls that were slow or failed.

    Without a single good call there is no series of good ones, so zero stands in.
    """
    calls = f"sum by (job) (rate({_COUNT}{{ALL_TOKENS}}[{window}]))"
    in_time = f"""sum by (job) (rate({_BUCKET}{{
        IN_TIME, http_response_status_code!~"5.."}}[{window}]))"""
    return f"1 - ({in_time} or 0 * {calls}) / {calls}"


def _telemetry() -> Iterator[Recorded]:
    """Yield who sends what, for alerts on what is missing."""
    yield Recorded(
        "keylag:keystone_hosts:count",
        """count by (job) (group by (job, host) (label_replace(
            keystone_configuration_info,
            "host", "$1", "instance", "(.+?)(/[0-9]+)?")))""",
        {},
    )
    yield Recorded(
        "keylag:keystone_metric:present",
        f"""group by (job, metric) (label_replace(
            {{__name__=~"{"|".join(KEYSTONE_METRICS)}"}},
            "metric", "$1", "__name__", "(.+)"))""",
        {},
    )
    yield Recorded(
        "keylag:exporter_source:seen",
        f"last_over_time(keylag_exporter_source_success[{MEMORY}])",
        {},
    )


def document(runbook_url: str = RUNBOOK_URL) -> dict[str, Any]:
    """Return the file that Prometheus loads; its alerts link to the runbook."""
    alerts = [_alert(one, runbook_url) for one in ALERTS]
    return {
        "groups": [
            {"name": "keylag-recorded", "rules": [*map(_record, recorded())]},
            {"name": "keylag-alerts", "rules": alerts},
        ]
    }


def _record(one: Recorded) -> dict[str, Any]:
    labels = {"labels": dict(one.labels)} if one.labels else {}
    return {"record": one.name, "expr": expand(one.query), **labels}


def _alert(one: Alert, runbook_url: str) -> dict[str, Any]:
    return {
        "alert": one.name,
        "expr": expand(one.query),
        "for": one.wait,
        "labels": {"severity": one.severity},
        "annotations": {
            "summary": one.summary,
            "description": one.description,
            "runbook_url": f"{runbook_url}#{one.name.lower()}",
        },
    }

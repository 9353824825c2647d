"""The recording rules and alerts, as the file that Prometheus loads."""

from collections.abc import Iterator
from typing import Any, Final

from keylag_dashboards.alerts import ALERTS
from keylag_dashboards.causes import CAUSES, METRICS, list_titles
from keylag_dashboards.config import (
    COARSE_SECONDS,
    RECORDING_SECONDS,
    RECORDING_WINDOW,
    RUNBOOK_URL,
)
from keylag_dashboards.model import Alert
from keylag_dashboards.promql import expand
from keylag_dashboards.recorded import RecordingRule, coarse_means, recorded_rates
from keylag_dashboards.telemetry_alerts import KEYSTONE_METRICS, LOOKBACK

WINDOWS: Final = ("5m", "30m", "1h", "6h")
"""Windows of the recorded share of calls not in time."""

_COUNT: Final = "http_server_request_duration_seconds_count"
_BUCKET: Final = "http_server_request_duration_seconds_bucket"
_METHOD: Final = "JOB, http_request_method"
LIKELY_CAUSE: Final = "likely_cause"
"""The annotation with the most expensive finding of `keylag diagnose --listen`."""
NO_LIKELY_CAUSE: Final = "`keylag diagnose --listen` names none"
_LIKELY_CAUSE: Final = (
    f"{{{{ with printf `topk(1, {METRICS['cost']}{{cluster=%q}} > 0)`"
    " $labels.cluster | query }}{{ with first . }}{{ .Labels.id }} {{ .Labels.name }}"
    f"{{{{ end }}}}{{{{ else }}}}{NO_LIKELY_CAUSE}{{{{ end }}}}"
)


def recording_rules() -> Iterator[RecordingRule]:
    """Yield all recording rules."""
    yield from _token_call_rules()
    yield from _telemetry_rules()


def _token_call_rules() -> Iterator[RecordingRule]:
    """Yield rates, and the share of calls not in time, of each job."""
    yield RecordingRule(
        "keylag:token_calls:rate5m",
        f"sum by ({_METHOD}) (rate({_COUNT}{{ALL_TOKENS}}[5m]))",
    )
    for window in WINDOWS:
        yield RecordingRule(
            f"keylag:token_calls_not_in_time:ratio_rate{window}",
            _not_in_time_query(window),
        )


def _not_in_time_query(window: str) -> str:
    """Return the share of calls that were slow or failed.

    If no call succeeded, the numerator has no series; zero replaces it.
    """
    calls = f"sum by (JOB) (rate({_COUNT}{{ALL_TOKENS}}[{window}]))"
    in_time = f"""sum by (JOB) (rate({_BUCKET}{{
        IN_TIME, http_response_status_code!~"5.."}}[{window}]))"""
    return f"1 - ({in_time} or 0 * {calls}) / {calls}"


def _telemetry_rules() -> Iterator[RecordingRule]:
    """Yield which hosts, metrics and exporters report, for alerts on missing ones."""
    yield RecordingRule(
        "keylag:keystone_hosts:count",
        """count by (JOB) (group by (JOB, host) (label_replace(
            keystone_configuration_info,
            "host", "$1", "instance", "(.+?)(/[0-9]+)?")))""",
    )
    yield RecordingRule(
        "keylag:keystone_metric:present",
        f"""group by (JOB, metric) (label_replace(
            {{__name__=~"{"|".join(KEYSTONE_METRICS)}"}},
            "metric", "$1", "__name__", "(.+)"))""",
    )
    yield RecordingRule(
        "keylag:exporter_source:seen",
        f"last_over_time(keylag_exporter_source_success[{LOOKBACK}])",
    )


def document(
    runbook_url: str = RUNBOOK_URL, window: str = RECORDING_WINDOW
) -> dict[str, Any]:
    """Return the rule file.

    Alerts link to headings of `runbook_url`; recorded rates have the range `window`.
    """
    alerts = [_alert(one, runbook_url) for one in ALERTS]
    rates = {"name": "keylag-rates", "interval": f"{RECORDING_SECONDS}s"}
    means = {"name": "keylag-means", "interval": f"{COARSE_SECONDS}s"}
    return {
        "groups": [
            {**rates, "rules": [*map(_record, recorded_rates(window))]},
            {**means, "rules": [*map(_record, coarse_means())]},
            {"name": "keylag-recorded", "rules": [*map(_record, recording_rules())]},
            {"name": "keylag-alerts", "rules": alerts},
        ]
    }


def _record(one: RecordingRule) -> dict[str, Any]:
    labels = {"labels": dict(one.labels)} if one.labels else {}
    return {"record": one.name, "expr": expand(one.query), **labels}


def _alert(one: Alert, runbook_url: str) -> dict[str, Any]:
    return {
        "alert": one.name,
        "expr": expand(one.query),
        "for": one.pending,
        "labels": {"severity": one.severity},
        "annotations": {
            "summary": one.summary,
            "description": one.description,
            **(_cause_texts(one.causes) if one.causes else {}),
            "runbook_url": f"{runbook_url}#{one.name.lower()}",
        },
    }


def _cause_texts(causes: tuple[str, ...]) -> dict[str, str]:
    """Return which causes an alert may have, and which one is likely."""
    named = "any" if set(causes) == CAUSES.keys() else list_titles(causes)
    text = f"{named}; `keylag diagnose --since 1h` tells which."
    return {"causes": text, LIKELY_CAUSE: _LIKELY_CAUSE}

"""The alerts as Grafana-managed rules, as the file that Grafana provisions.

They are the alerts of Prometheus' rule file: the same conditions, waiting times, labels
and texts, with a link to the panel that shows each. Recording rules stay in Prometheus.
"""

from typing import Any, Final

from keylag_dashboards import render, rules
from keylag_dashboards.alerts import ALERTS
from keylag_dashboards.causes import METRICS
from keylag_dashboards.config import RUNBOOK_URL, UID_PREFIX

FOLDER: Final = "Keylag"
"""Folder in Grafana; the dashboards are in it, too."""
INTERVAL: Final = "1m"
DATA_SOURCE: Final = "keylag-prometheus"
"""Uid of the Prometheus data source in deploy/grafana/provisioning/datasources."""
NO_PROMETHEUS: Final = "KeylagKeystoneSilent"
"""The alert that also fires if Prometheus does not answer.

All others keep their state then, as they do in Prometheus if a query fails.
"""
LOOKBACK_SECONDS: Final = 600
"""Grafana requires a time range, although an instant query ignores it."""
LIKELY_CAUSE_TEXT: Final = (
    "{{ with $values.C.Labels.id }}{{ . }} {{ $values.C.Labels.name }}"
    f"{{{{ else }}}}{rules.NO_LIKELY_CAUSE}{{{{ end }}}}"
)
"""The annotation `likely_cause`; query C finds the labels."""


def document(
    runbook_url: str = RUNBOOK_URL, data_source: str = DATA_SOURCE
) -> dict[str, Any]:
    """Return the file; rules query `data_source` and link to `runbook_url`.

    Raises ValueError if a dashboard lacks the panel of an alert.
    """
    links = {one.name: panel_link(one.panel) for one in ALERTS}
    alerts = [
        rule
        for group in rules.document(runbook_url)["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    group = {
        "orgId": 1,
        "name": "keylag-alerts",
        "folder": FOLDER,
        "interval": INTERVAL,
        "rules": [
            {
                **_rule(alert, data_source),
                "annotations": {**_texts(alert), **links[alert["alert"]]},
            }
            for alert in alerts
        ],
    }
    return {"apiVersion": 1, "groups": [group]}


def panel_link(place: str) -> dict[str, str]:
    """Return the annotations that link to a panel; raises ValueError without one."""
    board, number = render.find_panel(place)
    uid = f"{UID_PREFIX}{board.name}"
    return {"__dashboardUid__": uid, "__panelId__": str(number)}


def _rule(alert: dict[str, Any], data_source: str) -> dict[str, Any]:
    name, expression = alert["alert"], alert["expr"]
    data = [_query("A", _nameless(expression), data_source), _any_value()]
    if rules.LIKELY_CAUSE in alert["annotations"]:
        data.append(_query("C", with_likely_cause(expression), data_source))
    return {
        "uid": name,
        "title": name,
        "condition": "B",
        "data": data,
        "for": alert["for"],
        # A query finds only what fires, so a series that is gone has recovered.
        "noDataState": "OK",
        "missing_series_evals_to_resolve": 1,
        "execErrState": "Alerting" if name == NO_PROMETHEUS else "KeepLast",
        "labels": alert["labels"],
    }


def _query(ref_id: str, expression: str, data_source: str) -> dict[str, Any]:
    model = {"refId": ref_id, "expr": expression, "instant": True, "range": False}
    return {
        "refId": ref_id,
        "datasourceUid": data_source,
        "relativeTimeRange": {"from": LOOKBACK_SECONDS, "to": 0},
        "model": model,
    }


def _nameless(expression: str) -> str:
    """Remove the metric's name, as Prometheus does; to Grafana it is one more label."""
    return f"max without () ({expression})"


def with_likely_cause(expression: str) -> str:
    """Return a query for the alerts with the labels of their most expensive finding.

    Grafana's templates cannot query, but they see the labels of each query whose
    labels include the alert's.  A query without a result would silence the rule, so an
    alert in a cluster without a finding has its own labels.
    """
    alerts = _nameless(expression)
    findings = f"topk by (cluster) (1, {METRICS['cost']} > 0)"
    return (
        f"0 * {alerts} + on (cluster) group_left (id, name) {findings}"
        f" or on (cluster) {alerts}"
    )


def _any_value() -> dict[str, Any]:
    """Return a condition that is true for any value.

    Grafana considers a result of zero as healthy; for Prometheus it fires, too.
    """
    model = {"refId": "B", "type": "math", "expression": "abs($A) >= 0"}
    return {"refId": "B", "datasourceUid": "__expr__", "model": model}


def _texts(alert: dict[str, Any]) -> dict[str, str]:
    """Return the annotations as Grafana's templates name values."""
    texts = {
        name: text.replace("$value", "$values.A.Value")
        for name, text in alert["annotations"].items()
    }
    if rules.LIKELY_CAUSE in texts:
        texts[rules.LIKELY_CAUSE] = LIKELY_CAUSE_TEXT
    return texts

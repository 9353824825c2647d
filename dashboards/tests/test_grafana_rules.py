"""Grafana's rules are Prometheus' alerts; tests/test_grafana_alerts.py runs them."""

import re

import pytest
import yaml

from keylag_dashboards import __main__ as generator
from keylag_dashboards import grafana_alerts, render, rules
from keylag_dashboards.alerts import ALERTS

QUERY = re.compile(r"max without \(\) \((.*)\)")


def load(path: str) -> list[dict]:
    """Return the rules of a generated file."""
    text = (generator.FOLDER / path).read_text(encoding="utf-8")
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


PROMETHEUS = {r["alert"]: r for r in load("rules/keylag.yml") if "alert" in r}
GRAFANA = {rule["title"]: rule for rule in load("alerting/keylag.yaml")}
BOARDS = {
    made["uid"]: made
    for path, text in generator.generated_files()
    if path.parent.name == "provisioned"
    for made in [yaml.safe_load(text)]
}


def test_every_alert_has_a_rule() -> None:
    assert list(GRAFANA) == list(PROMETHEUS) == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("name", GRAFANA)
def test_rule_has_query_waiting_time_labels_and_texts_of_the_alert(name: str) -> None:
    alert, rule = PROMETHEUS[name], GRAFANA[name]
    query, condition, *_ = rule["data"]
    found = QUERY.fullmatch(query["model"]["expr"])
    texts = {
        key: text.replace("$values.A.Value", "$value")
        for key, text in rule["annotations"].items()
        if not key.startswith("__")
    }
    expected = dict(alert["annotations"])
    has_cause = rules.LIKELY_CAUSE in expected

    assert found is not None
    assert found[1] == alert["expr"]
    assert (rule["for"], rule["labels"]) == (alert["for"], alert["labels"])
    if has_cause:
        expected[rules.LIKELY_CAUSE] = grafana_alerts.LIKELY_CAUSE_TEXT
    assert texts == expected
    assert ("C" in [one["refId"] for one in rule["data"]]) == has_cause
    assert rule["condition"] == condition["refId"]


def test_texts_have_no_value_by_the_name_of_prometheus() -> None:
    """Before Grafana 12, `$value` is a list of all values and labels."""
    texts = [text for rule in GRAFANA.values() for text in rule["annotations"].values()]

    assert [text for text in texts if re.search(r"\$value\b", text)] == []


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_rule_links_to_its_panel(alert) -> None:
    links = GRAFANA[alert.name]["annotations"]
    board = BOARDS[links["__dashboardUid__"]]
    titles = {str(panel["id"]): panel["title"] for panel in render.all_panels(board)}
    name = links["__dashboardUid__"].removeprefix("keylag-")

    assert alert.panel == f"{name}: {titles[links['__panelId__']]}"


def test_uids_are_valid_and_unique() -> None:
    uids = [rule["uid"] for rule in GRAFANA.values()]

    assert len(set(uids)) == len(ALERTS)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", uid) for uid in uids)


def test_one_alert_fires_if_prometheus_does_not_answer() -> None:
    """Its text has no value, because there is none."""
    fires = [r for r in GRAFANA.values() if r["execErrState"] == "Alerting"]

    assert [rule["title"] for rule in fires] == [grafana_alerts.NO_PROMETHEUS]
    assert "$values" not in str(fires[0]["annotations"])


def test_missing_panel_is_an_error() -> None:
    """The message says what to write instead."""
    with pytest.raises(ValueError, match=r"no panel 'cache: X'; cache has: .*Memory"):
        grafana_alerts.panel_link("cache: X")


def test_panels_in_collapsed_rows_are_found() -> None:
    link = grafana_alerts.panel_link("sql: Backend requests")

    assert link["__dashboardUid__"] == "keylag-sql"
    assert link["__panelId__"].isdigit()


def test_options_set_runbook_and_data_source(tmp_path) -> None:
    url = "https://wiki.example.org/keylag"
    chosen = ["--runbook-url", url, "--data-source", "mine", "--output", str(tmp_path)]
    generator.main(chosen)

    made = (tmp_path / "alerting" / "keylag.yaml").read_text(encoding="utf-8")
    assert made.count(f"runbook_url: {url}#keylag") == len(ALERTS)
    with_cause = sum(bool(alert.causes) for alert in ALERTS)
    assert made.count("datasourceUid: mine\n") == len(ALERTS) + with_cause
    assert grafana_alerts.DATA_SOURCE not in made


def test_no_notification_is_provisioned() -> None:
    """Contact points and policies are the operator's."""
    text = (generator.FOLDER / "alerting/keylag.yaml").read_text(encoding="utf-8")

    assert set(yaml.safe_load(text)) == {"apiVersion", "groups"}
    assert "notification_settings" not in text

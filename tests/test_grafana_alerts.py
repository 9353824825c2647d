"""Grafana's alert rules in a real Grafana: healthy, silent, and two that fire."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import requests
import yaml
from traffic import query_prometheus

from keylag.demo import SAMPLE_CLOUD
from keylag.sample_cloud import connect
from keylag.services import SERVICES, is_installed
from keylag.stack import Stack, StackOptions
from keylag.stack_shutdown import stop_services
from keylag.tools import Tools
from keylag_dashboards import grafana_alerts
from keylag_dashboards.alerts import ALERTS
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.config import TAG
from keylag_dashboards.render import all_panels

pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(not is_installed("grafana"), reason="no `grafana` on the PATH"),
]
TIMEOUT_SECONDS = 120
SHORTEST_INTERVAL = "10s"
"""Grafana evaluates no rule more often."""
OPTIONS = StackOptions(
    cache="memcache_pool",
    # Errors repeat each second instead of every five minutes.
    environment={"OS_CACHE__MEMCACHE_DEAD_RETRY": "1"},
)
FIRING = ("KeylagCacheErrors", "KeylagExporterBlind")
"""Alerts of a stack without memcached and exporters."""
UNREAD = 'keylag_exporter_source_success{source="memcached"} == 0'
ACTIVE = {"Pending", "Alerting", "pending", "firing"}
"""States of alerts whose condition is true, in Grafana and in Prometheus."""

LabelSet = frozenset[tuple[str, str]]


def wait(attempt: Callable[[], object]) -> None:
    """Call `attempt` until it is true."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not attempt():
        assert time.monotonic() < deadline, attempt()
        time.sleep(1)


def ask(stack: Stack, path: str, method: str = "GET") -> Any:
    """Send a request to Grafana's API as administrator; return its response."""
    admin = ("admin", stack.admin().password)
    url = f"{stack.url('grafana')}/api/{path}"
    answer = requests.request(method, url, auth=admin, timeout=60)
    assert answer.ok, answer.text
    return answer.json()


def provision(stack: Stack, *immediate: str) -> None:
    """Load the rules with a short interval, and without waiting time for some."""
    content = grafana_alerts.document()
    (group,) = content["groups"]
    group["interval"] = SHORTEST_INTERVAL
    for rule in group["rules"]:
        rule["for"] = "0s" if rule["title"] in immediate else rule["for"]
    file = stack.folder / "grafana" / "provisioning" / "alerting" / "keylag.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    ask(stack, "admin/provisioning/alerting/reload", "POST")


def rules(stack: Stack) -> dict[str, dict[str, Any]]:
    """Return Grafana's rules with their states by name."""
    groups = ask(stack, "prometheus/grafana/api/v1/rules")["data"]["groups"]
    return {rule["name"]: rule for group in groups for rule in group["rules"]}


def in_grafana(stack: Stack) -> dict[LabelSet, dict[str, Any]]:
    """Return Grafana's active alerts by their labels, without the folder."""
    found = [alert for rule in rules(stack).values() for alert in rule["alerts"]]
    for alert in found:
        alert["labels"].pop("grafana_folder")
    return by_labels(found)


def in_prometheus(stack: Stack) -> dict[LabelSet, dict[str, Any]]:
    """Return Prometheus' active alerts by their labels."""
    url = f"{stack.url('prometheus')}/api/v1/alerts"
    return by_labels(requests.get(url, timeout=10).json()["data"]["alerts"])


def by_labels(alerts: list[dict[str, Any]]) -> dict[LabelSet, dict[str, Any]]:
    return {
        frozenset(alert["labels"].items()): alert
        for alert in alerts
        if alert["state"] in ACTIVE
    }


def firing(stack: Stack) -> set[str]:
    """Return the names of the alerts that fire in Grafana."""
    return {name for name, r in rules(stack).items() if r["state"] == "firing"}


def stop(stack: Stack, *names: str) -> None:
    """Stop services of the stack."""
    stop_services(stack.folder, [one for one in SERVICES if one.name in names])


def without_values(text: str) -> str:
    """Return a text without its numbers, because one of both is newer."""
    return re.sub(r"\d\S*( \d\S*)*", "N", text)


def log_in(stack: Stack) -> None:
    """Issue a token, which looks up values in the cache."""
    connect(stack.admin()).session.get_token()


def validate(stack: Stack) -> None:
    """Validate a token several times."""
    session = connect(stack.admin()).session
    url = f"{stack.url('keystone')}/v3/auth/tokens"
    for _ in range(10):
        session.get(url, headers={"X-Subject-Token": session.get_token()})


def likely_causes(alerts: Mapping[LabelSet, dict[str, Any]]) -> set[str]:
    """Return what the alerts name as their likely cause."""
    texts = (alert["annotations"].get("likely_cause") for alert in alerts.values())
    return {text for text in texts if text is not None}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose services may be stopped, with calls and evaluated rules."""
    folder = tmp_path_factory.mktemp("stack")
    with Stack(folder, Tools.load(), OPTIONS, initial_data=SAMPLE_CLOUD) as started:
        # Grafana answers before it has loaded its files, the dashboards last.
        wait(lambda: len(ask(started, f"search?tag={TAG}")) == len(BOARDS))
        provision(started)
        log_in(started)
        wait(lambda: all(r["evaluationTime"] > 0 for r in rules(started).values()))
        yield started


def test_every_alert_is_evaluated_without_errors(stack: Stack) -> None:
    found = rules(stack)

    assert list(found) == [alert.name for alert in ALERTS]
    assert {rule["health"] for rule in found.values()} == {"ok"}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_rule_links_to_a_panel_in_grafana(stack: Stack, alert) -> None:
    links = rules(stack)[alert.name]["annotations"]
    board = ask(stack, f"dashboards/uid/{links['__dashboardUid__']}")["dashboard"]
    titles = {str(panel["id"]): panel["title"] for panel in all_panels(board)}

    assert titles[links["__panelId__"]] == alert.panel.partition(": ")[2]


def test_no_alert_fires_on_a_healthy_stack(stack: Stack) -> None:
    """On a busy machine both may wait whether slow calls continue."""
    wait(lambda: set(in_grafana(stack)) == set(in_prometheus(stack)))

    assert firing(stack) == set()


def test_alerts_fire_with_labels_and_texts_of_prometheus(stack: Stack) -> None:
    """The value of the exporter that could not read memcached is zero."""
    provision(stack, *FIRING)
    stop(stack, "memcached")
    wait(lambda: query_prometheus(stack, UNREAD))
    stop(stack, "exporters")

    def fired() -> bool:
        log_in(stack)
        return firing(stack) == set(FIRING)

    wait(fired)
    wait(lambda: set(in_grafana(stack)) == set(in_prometheus(stack)))
    expected = in_prometheus(stack)
    for labels, alert in in_grafana(stack).items():
        shown, texts = alert["annotations"], expected[labels]["annotations"]
        assert shown["summary"] == texts["summary"]
        assert shown["runbook_url"] == texts["runbook_url"]
        assert shown.get("likely_cause") == texts.get("likely_cause")
        assert without_values(shown["description"]) == without_values(
            texts["description"]
        )
    received = ask(stack, "alertmanager/grafana/api/v2/alerts")
    assert set(FIRING) <= {alert["labels"]["alertname"] for alert in received}


def test_alert_names_the_likely_cause(stack: Stack) -> None:
    """Validations read the database, because memcached is still down."""

    def named() -> bool:
        validate(stack)
        return likely_causes(in_grafana(stack)) == {"C2 cache-server-hung"}

    wait(named)

    assert likely_causes(in_prometheus(stack)) == {"C2 cache-server-hung"}


def test_one_alert_fires_without_prometheus(stack: Stack) -> None:
    """All others keep their state."""
    provision(stack, grafana_alerts.NO_PROMETHEUS)
    stop(stack, "prometheus")

    wait(lambda: firing(stack) == {grafana_alerts.NO_PROMETHEUS})

    (alert,) = rules(stack)[grafana_alerts.NO_PROMETHEUS]["alerts"]
    assert alert["annotations"]["summary"] == "No metrics from Keystone."
    assert "connection refused" in alert["annotations"]["Error"]

"""Rules and alerts, checked and tried by Prometheus' own promtool."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from keylag_dashboards import __main__ as generator
from keylag_dashboards import rules
from keylag_dashboards.alerts import ALERTS
from keylag_dashboards.metrics import declared
from keylag_dashboards.promql import expand, metric_names

HERE = Path(__file__).parent
RULES = generator.FOLDER / "rules" / "keylag.yml"
RUNBOOK = HERE.parents[1] / rules.RUNBOOK
NAMES = {alert.name for alert in ALERTS}
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run promtool beside the tests; skip where there is none."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("not installed: promtool, which comes with Prometheus")
    command = [program, *arguments]
    return subprocess.run(
        command, cwd=HERE, capture_output=True, text=True, check=False
    )


def test_the_rules_are_what_prometheus_takes() -> None:
    """Each rule can be parsed, with its templates."""
    checked = promtool("check", "rules", str(RULES))

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_fire_when_they_should_and_only_then() -> None:
    """Series in, alerts out, down to the words."""
    tried = promtool("test", "rules", "alerts.yml")

    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_every_alert_is_tried() -> None:
    """Each is fired by some series of alerts.yml."""
    tests = yaml.safe_load((HERE / "alerts.yml").read_text(encoding="utf-8"))["tests"]
    tried = [one for test in tests for one in test.get("alert_rule_test", [])]

    assert {one["alertname"] for one in tried if one["exp_alerts"]} == NAMES


def test_rules_ask_for_declared_metrics() -> None:
    """A rule on a name that nobody sends would never fire."""
    made = [
        rule["expr"] for group in rules.document()["groups"] for rule in group["rules"]
    ]
    known = declared() | {one.name for one in rules.recorded()}

    assert {name for query in made for name in metric_names(expand(query))} <= known


def test_every_alert_has_its_page_in_the_runbook() -> None:
    """Each says what to look at and what to change, and no page is left over."""
    sections = dict(SECTION.findall(RUNBOOK.read_text(encoding="utf-8")))

    assert set(sections) == NAMES
    for text in sections.values():
        assert "**Look at**" in text
        assert "**Change**" in text

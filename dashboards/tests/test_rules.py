"""Rules and alerts, checked and tested by promtool."""

import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from keylag_dashboards import __main__ as generator
from keylag_dashboards import rules
from keylag_dashboards.alerts import ALERTS
from keylag_dashboards.metrics import declared_series
from keylag_dashboards.promql import expand, metric_names
from keylag_dashboards.recorded import RecordingRule, recorded_rates
from keylag_dashboards.telemetry_alerts import KEYSTONE_METRICS

HERE = Path(__file__).parent
RULES = generator.FOLDER / "rules" / "keylag.yml"
RUNBOOK = HERE.parents[1] / "docs" / "runbook.md"
NAMES = {alert.name for alert in ALERTS}
SECTION = re.compile(r"^## (Keylag\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run promtool in this folder; skip the test if it is not installed."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("not installed: promtool, which comes with Prometheus")
    command = [program, *arguments]
    return subprocess.run(
        command, cwd=HERE, capture_output=True, text=True, check=False
    )


def test_rules_pass_promtool_check() -> None:
    checked = promtool("check", "rules", str(RULES))

    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("cases", ["alerts.yml", "worst_case.yml"])
def test_alerts_pass_promtool_tests(cases) -> None:
    tried = promtool("test", "rules", cases)

    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_every_alert_fires_in_a_test() -> None:
    tests = yaml.safe_load((HERE / "alerts.yml").read_text(encoding="utf-8"))["tests"]
    tried = [one for test in tests for one in test.get("alert_rule_test", [])]

    assert {one["alertname"] for one in tried if one["exp_alerts"]} == NAMES


def recorded() -> list[RecordingRule]:
    """Return all recording rules."""
    return [*recorded_rates(), *rules.recording_rules()]


def test_rules_query_declared_metrics() -> None:
    """A rule on an undeclared metric never fires."""
    made = [
        rule["expr"] for group in rules.document()["groups"] for rule in group["rules"]
    ]
    known = declared_series() | {one.name for one in recorded()} | {"up"}

    assert set(KEYSTONE_METRICS) <= declared_series()
    assert {name for query in made for name in metric_names(expand(query))} <= known


def test_every_alert_has_a_runbook_section() -> None:
    """No section is left over, and each has the paragraphs *Look at* and *Change*."""
    sections = dict(SECTION.findall(RUNBOOK.read_text(encoding="utf-8")))

    assert set(sections) == NAMES
    for text in sections.values():
        assert "**Look at**" in text
        assert "**Change**" in text


def runbook_urls() -> dict[str, str]:
    """Return the runbook URL of each generated alert."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {
        rule["alert"]: rule["annotations"]["runbook_url"]
        for group in groups
        for rule in group["rules"]
        if "alert" in rule
    }


def test_runbook_urls_are_absolute_and_match_headings() -> None:
    """Notifications have no base address for relative links."""
    headings = HEADING.findall(RUNBOOK.read_text(encoding="utf-8"))
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    urls = {name: urlsplit(url) for name, url in runbook_urls().items()}

    assert set(urls) == NAMES
    assert {url.fragment for url in urls.values()} <= anchors
    assert len({url.fragment for url in urls.values()}) == len(NAMES)
    for url in urls.values():
        assert url.scheme == "https"
        assert url.netloc
        assert url.path.endswith("/docs/runbook.md")


def test_runbook_url_option_sets_all_urls(tmp_path) -> None:
    """The committed rules stay unchanged."""
    url = "https://wiki.example.org/keylag"
    generator.main(["--runbook-url", url, "--output", str(tmp_path)])

    made = (tmp_path / "rules" / "keylag.yml").read_text(encoding="utf-8")
    assert made.count(f"runbook_url: {url}#keylag") == len(NAMES)
    assert made.count("runbook_url") == len(NAMES)
    assert RULES.read_text(encoding="utf-8").count(url) == 0


def test_relative_runbook_url_is_rejected(tmp_path, capsys) -> None:
    chosen = ["--runbook-url", "docs/runbook.md", "--output", str(tmp_path)]
    with pytest.raises(SystemExit):
        generator.main(chosen)

    assert "start with https:// and a host" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

"""Causes, dashboards, faults and pages name the same things."""

from graphlib import TopologicalSorter

from keylag.diagnosis.measurements import MEASUREMENTS
from keylag.diagnosis.registry import RULES
from keylag.faults.registry import FAULTS
from keylag.paths import CHECKOUT
from keylag_dashboards import causes
from keylag_dashboards.alerts import ALERTS
from keylag_dashboards.boards import BOARDS
from keylag_dev import causes_page, runbook_page


def test_panel_of_each_cause_exists() -> None:
    panels = {
        f"{board.name}: {panel.title}" for board in BOARDS for panel in board.panels()
    }

    assert {one.panel for one in RULES.values()} <= panels


def test_each_cause_can_be_planted() -> None:
    assert RULES.keys() == {one.id for one in FAULTS.values()}


def test_faults_have_the_names_of_causes() -> None:
    assert {one.id: one.name for one in FAULTS.values()}.items() <= {
        one.id: one.name for one in RULES.values()
    }.items()


def test_symptoms_and_measurements_exist() -> None:
    symptoms = {symptom for one in RULES.values() for symptom in one.explains}
    asked = {name for one in RULES.values() for name in one.asks}

    assert symptoms <= RULES.keys()
    assert asked <= MEASUREMENTS.keys()


def test_page_of_causes_is_up_to_date() -> None:
    page = CHECKOUT / "docs" / "reference" / "causes.md"

    assert page.read_text(encoding="utf-8") == causes_page.render()


def test_no_cause_explains_itself_by_others() -> None:
    """Of two that explain each other the more expensive one stays."""
    symptoms = {
        one.id: [name for name in one.explains if one.id not in RULES[name].explains]
        for one in RULES.values()
    }

    TopologicalSorter(symptoms).prepare()


def test_file_of_the_dashboards_is_up_to_date() -> None:
    assert causes.FILE.read_text(encoding="utf-8") == causes_page.render_file()


def test_runbook_has_the_causes_of_each_alert() -> None:
    text = runbook_page.PAGE.read_text(encoding="utf-8")
    blocks = {name for _, name, _ in runbook_page.BLOCK.findall(text)}

    assert runbook_page.render(text) == text
    assert blocks == {runbook_page.ALL} | {one.name for one in ALERTS if one.causes}


def test_each_cause_of_an_alert_exists() -> None:
    assert {cause for one in ALERTS for cause in one.causes} == RULES.keys()

"""Findings as metrics."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import requests
from click.testing import CliRunner
from diagnosed import judge, make_facts
from prometheus_client.parser import text_string_to_metric_families
from test_diagnosis_rules import CASES
from test_diagnosis_unexplained import slow

from keylag.commands import diagnose
from keylag.diagnosis.ranking import Diagnosis
from keylag.diagnosis.registry import RULES
from keylag.diagnosis.serving import (
    COST,
    KNOWN,
    SUCCESS,
    UNEXPLAINED,
    DiagnosisCollector,
    serve,
)
from keylag.errors import KeylagError


def scrape(port: int) -> dict[str, dict[str, float]]:
    """Return the values by metric and id of the cause."""
    text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    return {
        family.name: {one.labels.get("id", ""): one.value for one in family.samples}
        for family in text_string_to_metric_families(text)
    }


def test_finding_has_its_cost_and_others_have_none() -> None:
    diagnosis = judge(CASES["T1"]())

    found = scrape(serve(lambda: diagnosis, "127.0.0.1", 0))

    assert found[COST].keys() == RULES.keys()
    assert [one for one, cost in found[COST].items() if cost] == ["T1"]
    assert found[COST]["T1"] == pytest.approx(diagnosis.findings[0].cost)
    assert found[SUCCESS] == {"": 1}


def test_missing_source_is_no_healthy_cause() -> None:
    diagnosis = judge(make_facts(without=["memcached"]))

    found = scrape(serve(lambda: diagnosis, "127.0.0.1", 0))

    assert found[KNOWN]["C5"] == 0
    assert found[KNOWN]["T1"] == 1


def test_without_calls_nothing_is_known_of_costs() -> None:
    calm = replace(make_facts(), calls=[])
    diagnosis = judge(calm)

    found = scrape(serve(lambda: diagnosis, "127.0.0.1", 0))

    assert not diagnosis.findings
    assert COST not in found
    assert found[SUCCESS] == {"": 1}


def test_cost_names_the_dashboard_that_shows_the_cause() -> None:
    diagnosis = judge(CASES["C4"]())
    port = serve(lambda: diagnosis, "127.0.0.1", 0)

    text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text

    assert f'{COST}{{dashboard="cache",id="C4",name="cache-far"}}' in text


def test_slow_calls_without_a_cause_are_a_metric() -> None:
    port = serve(lambda: judge(slow(0.1)), "127.0.0.1", 0)

    text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text

    assert f'{UNEXPLAINED}{{auth_method="",method="GET"}} 0.1' in text


def test_silent_prometheus_leaves_only_the_failure() -> None:
    def fail() -> Diagnosis:
        raise KeylagError

    assert scrape(serve(fail, "127.0.0.1", 0)) == {SUCCESS: {"": 0}}


@pytest.mark.parametrize("option", ["--to=1m", "--baseline=1d"])
def test_options_of_a_fixed_time_are_refused(option: str) -> None:
    words = ["--prometheus=http://127.0.0.1:9", "--listen=127.0.0.1:0", option]

    result = CliRunner().invoke(diagnose.command, words)

    assert result.exit_code == 2
    assert "leave out --to and --baseline" in result.output


def test_scrapes_in_between_get_the_same_answer() -> None:
    answers: Iterator[Diagnosis] = iter([judge(make_facts())])
    collector = DiagnosisCollector(lambda: next(answers))

    assert [one.name for one in collector.collect()] == [
        one.name for one in collector.collect()
    ]

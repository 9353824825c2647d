"""Calls that are slow although no rule names a cause."""

from collections.abc import Mapping
from dataclasses import replace
from io import StringIO

import pytest
from diagnosed import VALIDATION, WINDOW, healthy_calls, judge, make_facts
from rich.console import Console
from test_diagnosis_rules import CASES, FAILED_LOGINS, REFUSED_LOGINS, slow_cells

from keylag.diagnosis import wording
from keylag.diagnosis.document import as_json
from keylag.diagnosis.facts import Facts
from keylag.diagnosis.terminal import render

UNKNOWN = ("notification", "validate")
"""A cell whose time no rule judges."""
QUICK = {0.004: 10.0}
SLOW = {0.05: 0.0, 0.2: 10.0}


def slow(
    seconds: float,
    buckets: Mapping[float, float] = SLOW,
    *,
    per_second: float = 10.0,
) -> Facts:
    """Return validations with more time in a cell that no rule judges."""
    return make_facts(
        healthy_calls(
            VALIDATION, {UNKNOWN: seconds}, buckets=buckets, per_second=per_second
        )
    )


def test_slow_calls_without_a_cause_are_not_healthy() -> None:
    diagnosis = judge(slow(0.1))

    (one,) = diagnosis.unexplained
    assert not diagnosis.findings
    assert not diagnosis.is_healthy
    assert (one.kind, one.category) == (VALIDATION, "other")
    assert one.category_seconds == pytest.approx(0.1, rel=0.1)
    assert one.times > 10


@pytest.mark.parametrize(
    "facts",
    [
        slow(0.0),
        # Twice as long: other clouds have larger catalogs.
        slow(0.005),
        # A few calls are slow, and half of them are not.
        slow(0.1, QUICK),
        slow(0.1, per_second=20 / WINDOW.seconds),
    ],
)
def test_others_are_healthy(facts: Facts) -> None:
    assert judge(facts).is_healthy


def test_what_a_finding_costs_is_explained() -> None:
    cells = {("other", "roles"): 0.1, UNKNOWN: 0.002}
    facts = make_facts(healthy_calls(VALIDATION, cells, buckets=SLOW))

    diagnosis = judge(facts)

    assert [one.rule.id for one in diagnosis.findings] == ["A1"]
    assert not diagnosis.unexplained


def test_a_cloud_is_compared_with_itself_more_strictly() -> None:
    before, now = slow(0.005, QUICK), slow(0.02, SLOW)

    assert judge(before).is_healthy
    assert not judge(now, before).is_healthy


def test_a_few_calls_of_a_baseline_say_nothing() -> None:
    few = slow(0.0, QUICK, per_second=20 / WINDOW.seconds)

    assert judge(slow(0.03), few).is_healthy


def test_beside_a_finding_no_category_is_named() -> None:
    cells = {("other", "roles"): 0.1, UNKNOWN: 0.1}
    facts = make_facts(healthy_calls(VALIDATION, cells, buckets={0.1: 0, 0.3: 10}))

    diagnosis = judge(facts)

    (one,) = diagnosis.unexplained
    assert one.category == ""
    assert "beside what the findings cost" in next(wording.open_questions(diagnosis))


def test_calls_that_may_wait_for_busy_workers_are_explained() -> None:
    flood = CASES["H3"]()
    validations = slow(0.1).find(VALIDATION)

    diagnosis = judge(replace(flood, calls=[REFUSED_LOGINS, validations]))

    assert [one.rule.id for one in diagnosis.findings] == ["H3"]
    assert not diagnosis.unexplained


def test_every_form_says_so() -> None:
    diagnosis = judge(slow(0.1))
    console = Console(file=StringIO(), width=200, record=True)

    render(diagnosis, console)

    text = console.export_text()
    assert "no cause that could be judged explains it" in text
    assert wording.HEALTHY not in text
    document = as_json(diagnosis)
    assert not document["healthy"]
    assert [one["category"] for one in document["unexplained"]] == ["other"]


@pytest.mark.parametrize(("seconds", "named"), [(0.0, False), (0.0015, True)])
def test_the_cause_next_to_a_finding_is_named(seconds: float, *, named: bool) -> None:
    diagnosis = judge(make_facts(slow_cells(seconds, ("other", "catalog"))))

    assert diagnosis.is_healthy
    assert ("A2 catalog-size" in wording.no_cause(diagnosis)) is named


@pytest.mark.parametrize(
    ("per_second", "says"), [(0.1, ["POST password"]), (0.01, [])], ids=["many", "few"]
)
def test_calls_of_which_many_fail_are_not_healthy(
    per_second: float, says: list[str]
) -> None:
    diagnosis = judge(make_facts(replace(FAILED_LOGINS, per_second=per_second)))
    console = Console(file=StringIO(), width=200, record=True)

    render(diagnosis, console)

    assert not diagnosis.findings
    assert diagnosis.is_healthy == (not says)
    assert ("fail after" in console.export_text()) == bool(says)
    assert [one["call"] for one in as_json(diagnosis)["failing"]] == says


def test_commits_that_a_cluster_refuses_are_named_with_the_calls_that_fail() -> None:
    many = replace(FAILED_LOGINS, per_second=0.1)
    diagnosis = judge(make_facts(many, refused_commits=0.2))
    (text,) = wording.open_questions(diagnosis)

    assert "the Galera cluster refused 0.2 commits/s" in text
    assert "let all Keystones write to one node" in text
    (failing,) = as_json(diagnosis)["failing"]
    assert failing["refused_commits_per_second"] == 0.2

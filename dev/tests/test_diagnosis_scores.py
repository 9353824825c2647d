"""The scores of a diagnosis: what counts as right, and the page of them."""

import json
import math
from dataclasses import replace

import pytest

from keylag.diagnosis.facts import Facts, Window, make_calls
from keylag.diagnosis.prometheus import Sample
from keylag.faults.probe import Latency
from keylag.faults.registry import FAULTS
from keylag.services.base import StackOptions
from keylag_dev.diagnosis_cases import (
    Load,
    ScoredCase,
    healthy,
    single_faults,
)
from keylag_dev.diagnosis_page import render
from keylag_dev.diagnosis_savings import savings
from keylag_dev.diagnosis_scores import (
    Score,
    append_score,
    read_scores,
    slower_calls,
    summary,
)
from keylag_dev.recorded_facts import recall, record

FAST = {"GET": Latency(100, 0, 0.010, 0.020)}
SLOW = {"GET": Latency(100, 0, 0.010, 0.080)}
HEALTHY = Score(
    case="healthy 1, 2 clients",
    expected=(),
    named=(),
    load=Load(),
    latency=FAST,
    slices={"GET": (0.010, 0.012)},
    category="password_hash",
    doctor=(),
    seconds=0.4,
    text="nothing\n",
    document={"findings": []},
    recorded={"start": 0.0, "end": 60.0, "answers": {}},
)
FAR = replace(
    HEALTHY, case="C4", expected=("C4",), named=("C4", "W2"), latency=SLOW, text="far\n"
)
WRONG = replace(FAR, case="D2", expected=("D2",), named=("D1", "D2"), text="wrong\n")
PAIR = replace(FAR, case="C4+H3", expected=("C4", "H3"), named=("H3", "C4"))


def test_of_a_pair_both_among_the_first_three_are_right() -> None:
    assert PAIR.is_right
    assert not replace(PAIR, named=("H3", "W1", "W2", "C4")).is_right


def test_of_a_single_fault_only_the_first_finding_is_right() -> None:
    assert FAR.is_right
    assert not WRONG.is_right


def test_a_finding_of_a_healthy_stack_is_wrong() -> None:
    assert HEALTHY.is_right
    assert not replace(HEALTHY, named=("W2",)).is_right


def test_impact_is_that_against_as_many_clients() -> None:
    scores = [HEALTHY, FAR]

    assert slower_calls(FAR, scores) == ["GET"]
    assert slower_calls(replace(FAR, latency=FAST), scores) == []
    assert slower_calls(replace(FAR, load=Load(clients=8)), scores) is None


def test_a_fault_beside_another_one_is_compared_with_that() -> None:
    beside = Load(beside={"D1": 1.0})
    far = replace(FAR, case="reference, D1 at 1", expected=("D1",), load=beside)
    both = replace(FAR, case="D5", expected=("D5",), load=beside)

    assert slower_calls(both, [HEALTHY, far, both]) == []
    assert "right cause first: 1 of 1" in summary([HEALTHY, FAR, far])


@pytest.mark.parametrize("planted", [*single_faults()], ids=lambda one: one.name)
def test_each_fault_has_a_reference(planted: ScoredCase) -> None:
    references = [one for one in healthy(1) if one.load == planted.load]

    assert len(references) == 1
    assert all(need.met(planted.load.options) for need in FAULTS[planted.name].needs)


def test_faults_without_impact_do_not_count() -> None:
    weak = replace(WRONG, latency=FAST)

    assert "right cause first: 1 of 2" in summary([HEALTHY, FAR, WRONG])
    lines = summary([HEALTHY, FAR, weak])
    assert "right cause first: 1 of 1" in lines
    assert "faults that slowed no call, which do not count: 1" in lines


def test_scores_are_read_as_they_were_written(tmp_path) -> None:
    options = StackOptions(extras=("second-node", "service"), users=1000)
    other = replace(PAIR, load=Load(4, ("token-validate",), options, {"D1": 1.0}))
    for one in (HEALTHY, other):
        append_score(one, tmp_path)

    assert read_scores(tmp_path) == [HEALTHY, other]
    assert read_scores(tmp_path / "none") == []


def test_page_has_each_wrong_diagnosis_in_full() -> None:
    page = render([HEALTHY, FAR, WRONG, PAIR])

    assert "| D2 | D1 D2 | **no** | GET |" in page
    assert "### D2\n\n```text\nwrong\n```" in page
    assert "### C4+H3" in page
    assert "### C4\n" not in page


def test_recorded_facts_are_judged_again_as_they_were() -> None:
    served = {"http_request_method": "GET", "http_response_status_code": "200"}
    cell = {**served, "keystone_phase": "cache", "keystone_operation": "roles"}
    answers = {
        "calls": [Sample(served, 2.0)],
        "cells": [Sample(cell, 0.5)],
        "queue": [Sample({}, math.inf)],
    }
    window = Window(100.0, 160.0)
    facts = Facts(window, make_calls(answers, window), answers)

    assert recall(json.loads(json.dumps(record(facts)))) == facts


def test_a_predicted_saving_is_compared_with_the_one_that_clients_saw() -> None:
    calls = {"GET": {"saving_seconds": [0.08, 0.10, 0.12], "share": 0.7}}
    slow = {"GET": (0.110, 0.112)}
    document = {"findings": [{"id": "C4", "calls": calls}]}
    far = replace(FAR, slices=slow, document=document)

    ((_, verification),) = (one.values() for one in savings([HEALTHY, far]))
    found = verification["calls"]["GET"]

    assert found["verdict"] == "agrees"
    assert found["measured_saving_seconds"][1] == pytest.approx(0.1)


def test_a_saving_under_another_load_is_not_compared() -> None:
    calls = {"GET": {"saving_seconds": [0.08, 0.10, 0.12], "share": 0.7}}
    document = {"findings": [{"id": "C4", "calls": calls}]}
    far = replace(FAR, document=document, load=Load(clients=8))

    assert savings([HEALTHY, far]) == []

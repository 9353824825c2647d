"""What a finding costs the p50 and the p95, and whose calls it hits."""

from collections.abc import Mapping

import pytest
from diagnosed import LOGIN, VALIDATION, healthy_calls, judge, make_facts

from keylag.diagnosis.document import as_json
from keylag.diagnosis.facts import Facts
from keylag.diagnosis.impact import UNKNOWN_CALLERS
from keylag.diagnosis.prometheus import Sample
from keylag.diagnosis.rule import MATTERS

INF = float("inf")
FAST = {0.05: 10.0, 2.0: 10.0, INF: 10.0}
"""All calls take at most 50 ms."""
ALL_SLOW = {0.05: 0.0, 0.5: 10.0, 2.0: 10.0, INF: 10.0}
SOME_STALL = {0.05: 9.0, 2.0: 10.0, INF: 10.0}


def facts(buckets: Mapping[float, float], more: float, **answers: object) -> Facts:
    """Return facts of validations that rebuild what a cache would have."""
    cells = {("sql", "validate"): more} if more else {}
    statements = 61.0 if more else 0.0
    calls = healthy_calls(VALIDATION, cells, statements=statements, buckets=buckets)
    return make_facts(calls, **answers)  # type: ignore[arg-type]


def shares(buckets: Mapping[float, float]) -> tuple[float, float]:
    slow, usual = facts(buckets, 0.1, memcached_up=0.0), facts(FAST, 0.0)
    (finding,) = as_json(judge(slow, usual))["findings"]
    call = finding["calls"]["GET"]
    return call["share_of_p50"], call["share_of_p95"]


def test_what_slows_all_calls_has_its_share_of_both_quantiles() -> None:
    """Its least share is seven tenths of what it seems to cost."""
    p50, p95 = shares(ALL_SLOW)

    assert 0.6 < p50 < 0.7
    assert 0.6 < p95 < 0.7


def test_what_stalls_some_calls_has_its_share_of_the_p95_only() -> None:
    p50, p95 = shares(SOME_STALL)

    assert p50 < 0.1
    assert p95 > 0.4


def test_share_of_a_quantile_is_unknown_without_durations() -> None:
    (finding,) = as_json(judge(facts({}, 0.1, memcached_up=0.0)))["findings"]

    assert finding["calls"]["GET"]["share_of_p50"] is None
    assert finding["calls"]["GET"]["share"] > 0.4


def test_wait_before_keystone_is_no_share_of_its_quantiles() -> None:
    waiting = facts(FAST, 0.0, queue=40.0, workers=0.3)
    (finding,) = as_json(judge(waiting, facts(FAST, 0.0)))["findings"]

    assert finding["id"] == "W1"
    assert finding["calls"]["GET"]["share_of_p50"] is None


@pytest.mark.parametrize(("in_time", "causes"), [(0.94, ["D4"]), (0.96, []), (0.0, [])])
def test_what_doubles_the_p95_is_a_finding(in_time: float, causes: list[str]) -> None:
    """A sixteenth of the calls wait for a lock: the mean hardly shows it."""
    buckets = {0.02: in_time, 0.2: 1.0, INF: 1.0} if in_time else {}
    rate = 10.0
    calls = healthy_calls(
        VALIDATION,
        {("sql", "validate"): 0.0015},
        per_second=rate,
        buckets={limit: rate * share for limit, share in buckets.items()},
    )
    waited = make_facts(calls, row_lock_seconds=0.0015 * rate, log_seconds=0.001)

    diagnosis = judge(waited)

    assert [one.rule.id for one in diagnosis.findings] == causes
    assert all(one.share < MATTERS for one in diagnosis.findings)


def test_callers_share_the_cost_of_validations() -> None:
    callers = [
        Sample({"keystone_caller": "nova"}, 7.5),
        Sample({"keystone_caller": "other"}, 2.5),
    ]
    slow = facts({}, 0.1, memcached_up=0.0, validations=callers)

    (finding,) = as_json(judge(slow))["findings"]

    nova, other = finding["callers"]
    assert (nova["caller"], other["caller"]) == ("nova", "other")
    assert nova["cost_seconds_per_second"] == pytest.approx(
        3 * other["cost_seconds_per_second"]
    )
    assert nova["cost_seconds_per_second"] + other[
        "cost_seconds_per_second"
    ] == pytest.approx(finding["cost_seconds_per_second"])
    assert finding["unknown_callers"] is None


def test_callers_of_log_ins_are_unknown() -> None:
    slow = make_facts(
        healthy_calls(LOGIN, {("sql", "authenticate"): 0.5}, statements=61.0),
        memcached_up=0.0,
    )

    (finding,) = as_json(judge(slow))["findings"]

    assert finding["unknown_callers"] == UNKNOWN_CALLERS

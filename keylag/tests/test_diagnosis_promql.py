"""The PromQL beside each number of the evidence returns that number."""

import pytest
from diagnosed import LOGIN, VALIDATION, make_facts

from keylag.diagnosis.facts import Facts
from keylag.diagnosis.measurements import MEASUREMENTS
from keylag.diagnosis.prometheus import Sample
from keylag.diagnosis.promql import evidence_query
from keylag.diagnosis.reading import fill
from keylag.diagnosis.rule import Evidence, PerCall

ERRORS = [Sample({"error_type": "a"}, 2.0), Sample({"error_type": "b"}, 3.0)]


@pytest.fixture
def facts() -> Facts:
    known = make_facts(cache_errors=ERRORS)
    queries = {
        name: fill(one.promql, 60, 'cluster="one"')
        for name, one in MEASUREMENTS.items()
    }
    return Facts(known.window, known.calls, known.answers, queries)


def test_mean_of_a_kind_of_calls_is_divided_by_them(facts: Facts) -> None:
    one = Evidence("", 4.0, "", "statements", per_call=PerCall(LOGIN))

    selector = (
        '{http_route="/v3/auth/tokens", http_request_method="POST",'
        ' keystone_auth_method="password", http_response_status_code=~"2..",'
        ' cluster="one"}[60s]'
    )
    assert evidence_query(one, facts) == (
        f"sum (rate(keystone_request_sql_statements_total{selector}))"
        f" / sum (rate(http_server_request_duration_seconds_count{selector}))"
    )


def test_time_in_phases_and_operations(facts: Facts) -> None:
    per_call = PerCall(VALIDATION, phases=("ldap",), operations=("catalog", "render"))

    query = evidence_query(Evidence("", 1.0, "s", "cells", per_call=per_call), facts)

    part, whole = query.split(" / ")
    assert 'keystone_phase=~"ldap", keystone_operation=~"catalog|render"' in part
    assert "keystone_phase" not in whole
    assert 'keystone_auth_method=""' in whole


def test_sum_is_asked_as_a_sum(facts: Facts) -> None:
    whole = evidence_query(Evidence("", 5.0, "", "cache_errors"), facts)
    part = evidence_query(Evidence("", 2.0, "", "cache_errors"), facts)

    assert whole == 'sum (rate(keystone_cache_errors_total{cluster="one"}[60s]))'
    assert part.startswith("sum by (error_type) (rate(")


def test_run_has_no_query() -> None:
    one = Evidence("", 5.0, "", "statements", per_call=PerCall(LOGIN))

    assert evidence_query(one, make_facts()) == ""

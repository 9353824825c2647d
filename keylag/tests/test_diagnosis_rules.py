"""Each rule finds its cause in facts that have it, and nothing in healthy ones."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from diagnosed import (
    LOGIN,
    RATES,
    VALIDATION,
    WINDOW,
    found,
    healthy_calls,
    histogram,
    judge,
    make_facts,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from keylag.diagnosis.case import Case
from keylag.diagnosis.configuration import Configuration, Option, Setting
from keylag.diagnosis.document import as_json
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.facts import FAILED, REFUSED, Calls, Facts
from keylag.diagnosis.measurements import MEASUREMENTS, SERVICES, SOURCES
from keylag.diagnosis.prometheus import Sample
from keylag.diagnosis.registry import RULES
from keylag.diagnosis.rule import MATTERS
from keylag.diagnosis.rules import d2_database_slow
from keylag.diagnosis.service_requests import SERVICE

INF = "+Inf"
SERVICE_MEASUREMENTS = [
    name for name, one in MEASUREMENTS.items() if one.source == SERVICES
]


def rebuilt(kind: tuple[str, str] = VALIDATION) -> object:
    """Calls that read from the database what a warm cache would have."""
    more = {("sql", "validate"): 0.03, ("orm", "validate"): 0.03}
    return healthy_calls(kind, more, statements=49.0)


def by(label: str, **values: float) -> list[Sample]:
    return [Sample({label: name}, value) for name, value in values.items()]


def looked_up(region: str, **results: float) -> list[Sample]:
    return [
        Sample({"keystone_cache_region": region, "keystone_cache_result": name}, value)
        for name, value in results.items()
    ]


def slow_cells(seconds: float, *cells: tuple[str, str]) -> object:
    return healthy_calls(VALIDATION, dict.fromkeys(cells, seconds))


REFUSED_LOGINS = replace(healthy_calls(LOGIN), outcome=REFUSED, per_second=4.0)
FAILED_LOGINS = replace(REFUSED_LOGINS, outcome=FAILED)
SINGLE_CALLS = [
    Sample({"keystone_sql_call": "read", "le": "0.001"}, 0.0),
    Sample({"keystone_sql_call": "read", "le": "0.01"}, 0.0),
    Sample({"keystone_sql_call": "read", "le": "0.05"}, 10.0),
    Sample({"keystone_sql_call": "read", "le": INF}, 10.0),
]
"""Reads of which even the quickest take more than ten milliseconds."""
SQL = slow_cells(0.05, ("sql", "validate"))
WRITING = slow_cells(0.15, ("sql", "other"))
REVOKING = replace(WRITING, kind=("DELETE", ""), per_second=0.1)


def paused_writes(paused: float, mean: float) -> dict[str, Any]:
    """Return the answers of a Galera cluster: two commits for each of REVOKING."""
    commits = 2 * REVOKING.per_second
    return {
        "wsrep_cluster_size": 3.0,
        "wsrep_paused": paused,
        "sql_call_seconds": by("keystone_sql_call", commit=commits * mean, read=0.01),
        "sql_call_buckets": [
            Sample({"keystone_sql_call": "commit", "le": INF}, commits)
        ],
    }


CASES = {
    "C1": lambda: make_facts(
        rebuilt(),
        cache_backends=by("keystone_cache_backend", **{"dogpile.cache.null": 4}),
    ),
    "C2": lambda: make_facts(rebuilt(), memcached_up=0.0),
    "C3": lambda: make_facts(
        cache_backends=by("keystone_cache_backend", **{"dogpile.cache.pymemcache": 4}),
        memcached_up=0.0,
        server_workers=by("state", busy=4.0, idle=0.0),
        requests=0.1,
    ),
    "C4": lambda: make_facts(
        slow_cells(0.1, ("cache", "validate")),
        cache_call_buckets=histogram(le_0_005=0.0, le_0_02=10.0, le_Inf=10.0),
        cache_call_seconds=0.12,
    ),
    "C5": lambda: make_facts(
        rebuilt(), memcached_evictions=50.0, memoized=looked_up("role", miss=100.0)
    ),
    "C6": lambda: make_facts(rebuilt(), memcached_connections=1.0, cache_errors=2.0),
    "C7": lambda: make_facts(
        healthy_calls(VALIDATION, {("cache", "validate"): 0.02}, round_trips=90.0),
        cache_backends=by("keystone_cache_backend", **{"dogpile.cache.redis": 4}),
    ),
    "C8": lambda: make_facts(
        rebuilt(),
        invalidations=by("keystone_cache_region", role=8.0),
        memoized=looked_up("role", miss=100.0),
    ),
    "C9": lambda: make_facts(rebuilt(), memoized=looked_up("role", miss=100.0)),
    "C10": lambda: make_facts(
        slow_cells(0.05, ("sql", "catalog")), memcached_too_large=10.0
    ),
    "H1": lambda: make_facts(
        healthy_calls(LOGIN, {("password_hash", "authenticate"): 0.8}),
        hashes=[
            Sample(
                {
                    "keystone_password_hash_algorithm": "bcrypt",
                    "keystone_password_hash_cost": "14",
                },
                0.5,
            )
        ],
    ),
    "H2": lambda: make_facts(
        healthy_calls(LOGIN, per_second=8.0),
        healthy_calls(VALIDATION, per_second=1.0),
        queue=2.0,
    ),
    "H3": lambda: make_facts(
        REFUSED_LOGINS, failures=by("error_type", Unauthorized=4.0)
    ),
    "A1": lambda: make_facts(slow_cells(0.05, ("other", "roles"))),
    "A2": lambda: make_facts(slow_cells(0.05, ("other", "catalog"))),
    "R1": lambda: make_facts(
        slow_cells(0.05, ("revocation_match", "check_revocation")),
        events_fetched=9000.0,
        live_events=3000.0,
    ),
    "R2": lambda: make_facts(
        slow_cells(0.05, ("sql", "check_revocation")),
        index_present=by("columns", issued_before=0.0),
    ),
    "R3": lambda: make_facts(
        healthy_calls(LOGIN, per_second=4.0),
        replace(healthy_calls(VALIDATION), kind=("DELETE", ""), per_second=4.0),
        events_written=8.0,
    ),
    "D1": lambda: make_facts(
        SQL,
        sql_call_buckets=SINGLE_CALLS,
        sql_call_seconds=by("keystone_sql_call", read=0.2),
    ),
    "D2": lambda: slow_statements(disk_reads=0.0),
    "D3": lambda: make_facts(
        SQL,
        log_seconds=by("id", a=0.2, b=0.001),
        log_calls=by("id", a=10.0, b=10.0),
        log_rows_examined=by("id", a=1e6),
        log_rows_sent=by("id", a=10.0),
    ),
    "D4": lambda: make_facts(
        SQL, log_seconds=by("id", a=0.2), log_lock_seconds=by("id", a=0.19)
    ),
    "D5": lambda: make_facts(
        slow_cells(0.05, ("sql_pool", "validate")), sql_pool_waits=5.0
    ),
    "D6": lambda: make_facts(
        SQL,
        sql_connects=10.0,
        sql_call_seconds=by("keystone_sql_call", connect=0.15, read=0.01),
    ),
    "D7": lambda: make_facts(
        SQL,
        proxysql_seconds=0.3,
        proxysql_timeouts=1.0,
        proxysql_waits=20.0,
        log_seconds=by("id", a=0.01),
        log_calls=by("id", a=10.0),
    ),
    "D8": lambda: make_facts(
        SQL,
        wsrep_cluster_size=3.0,
        wsrep_causal_reads=5.0,
        wsrep_sync_wait=0.0,
        sql_call_buckets=SINGLE_CALLS,
        sql_call_seconds=by("keystone_sql_call", read=0.2),
    ),
    "D9": lambda: make_facts(REVOKING, **paused_writes(0.4, 0.07)),
    "L1": lambda: make_facts(healthy_calls(LOGIN, {("ldap", "authenticate"): 0.3})),
    "T1": lambda: make_facts(
        slow_cells(0.05, ("token_crypto", "validate")), fernet_keys=1000.0
    ),
    "W1": lambda: make_facts(workers=0.3, queue=2.0),
    "W2": lambda: make_facts(cpu_wait_seconds=0.25),
    "W3": lambda: make_facts(
        slow_cells(0.1, ("cache", "validate")), workers=0.1, cpu_seconds=0.09
    ),
    "N1": lambda: make_facts(
        probes=0.2,
        probe_seconds=by("phase", resolve=0.002, connect=0.02, processing=0.02),
    ),
    "M1": lambda: service_facts(online=10.0, offline=0.0),
    "M2": lambda: service_facts(online=1.0, offline=9.0, stalls=5.0),
}


def slowed(kind: tuple[str, str]) -> object:
    """Calls whose every cell takes three times as long."""
    calls = healthy_calls(kind)
    return replace(calls, cells={cell: 3 * x for cell, x in calls.cells.items()})


def service_facts(
    online: float,
    offline: float,
    *,
    stalls: float = 0.0,
    replayed: float = 0.0,
    **others: float,
) -> Facts:
    """A service that validates tokens, with stalls of its token cache.

    `replayed` are the misses of a cache that loses nothing, if they are fewer.
    """
    label = "keystone_auth_token_validation"
    return make_facts(
        service_validations=by(label, online=online, offline=offline),
        service_requests=10.0,
        service_seconds=0.4,
        service_cells=by("keystone_phase", keystone=0.03 * online, cache=1.0),
        service_replayed=by(
            "keystone_auth_token_times", **{"1": replayed or online, "2": 0.1, "4": 0.1}
        ),
        service_cache_buckets=histogram(le_0_1=10.0, le_0_5=10.0, le_Inf=10.0 + stalls),
        service_cache_seconds=0.01 + 0.5 * stalls,
        **{"service_cache_errors": 0.0, "service_cache_time": 300.0, **others},
    )


@pytest.mark.parametrize("rule", RULES)
def test_rule_finds_its_cause(rule: str) -> None:
    assert rule in found(CASES[rule]())


@pytest.mark.parametrize("rule", RULES)
def test_cause_is_the_first_finding(rule: str) -> None:
    assert found(CASES[rule]())[0] == rule


def test_healthy_keystone_has_no_finding() -> None:
    assert found(make_facts()) == []


def test_slow_machine_is_no_finding() -> None:
    """All phases longer alike, without a wait for a CPU: an old processor."""
    assert found(make_facts(*(slowed(kind) for kind in (LOGIN, VALIDATION)))) == []


@pytest.mark.parametrize("source", ["call histograms", "mysql", "slow log"])
def test_missing_source_makes_rules_unknown(source: str) -> None:
    diagnosis = judge(make_facts(without=[source]))

    missing = {one.rule.id for one in diagnosis.unknown if one.why == source}
    assert missing
    assert not missing & {one.rule.id for one in diagnosis.unlikely}


def test_baseline_replaces_the_shipped_figures() -> None:
    """A large catalog that was there yesterday is no news."""
    now = CASES["A2"]()

    assert found(now, baseline=now) == []


def test_two_causes_are_both_found() -> None:
    calls = healthy_calls(
        VALIDATION,
        {("token_crypto", "validate"): 0.05, ("other", "catalog"): 0.05},
    )

    assert set(found(make_facts(calls, fernet_keys=1000.0))) == {"T1", "A2"}


def test_errors_of_keystone_are_no_wrong_passwords() -> None:
    diagnosis = judge(make_facts(FAILED_LOGINS))

    assert not diagnosis.findings
    assert [one.kind for one in diagnosis.failing] == [LOGIN]


def test_wrong_passwords_cost_more_waits_than_workers() -> None:
    refused = replace(REFUSED_LOGINS, per_second=0.3)
    busy = make_facts(healthy_calls(VALIDATION, per_second=40.0), refused, queue=0.4)

    (finding,) = judge(busy).findings

    assert finding.rule.id == "H3"
    assert finding.shares["workers", ""] < MATTERS < finding.shares[VALIDATION]


@pytest.mark.parametrize(("flushes", "first"), [(1.0, "C8"), (0.01, "C9")])
def test_a_memcached_that_a_client_flushes_loses_all_regions(
    flushes: float, first: str
) -> None:
    facts = make_facts(
        rebuilt(), memoized=looked_up("role", miss=100.0), memcached_flushes=flushes
    )

    assert found(facts) == [first]


@pytest.mark.parametrize(("errors", "first"), [(0.01, "C4"), (1.0, "C2")])
def test_few_failed_calls_are_not_why_a_cache_is_slow(
    errors: float, first: str
) -> None:
    facts = CASES["C4"]()
    answers = facts.answers | {"cache_errors": [Sample({}, errors)]}

    assert found(replace(facts, answers=answers)) == [first]


def test_a_hypervisor_takes_nothing_from_a_far_database() -> None:
    """The calls wait for messages, whoever has the CPU."""
    calls = slow_cells(0.5, ("sql", "validate"))
    facts = make_facts(
        calls,
        sql_call_buckets=SINGLE_CALLS,
        sql_call_seconds=by("keystone_sql_call", read=0.2),
        cpu_wait_seconds=0.0,
        host_cpu_seconds=by("mode", idle=2.0, user=1.0, steal=1.0),
    )

    assert "D1" in found(facts)


def test_a_hypervisor_that_takes_the_cpu_starves_workers_that_never_wait() -> None:
    facts = make_facts(
        cpu_wait_seconds=0.0, host_cpu_seconds=by("mode", idle=2.0, user=1.0, steal=1.0)
    )

    assert found(facts) == ["W2"]


@pytest.mark.parametrize("rule", ["A2", "C8"])
def test_a_cache_that_is_full_is_not_always_the_cause(rule: str) -> None:
    facts = CASES[rule]()
    full = facts.answers | {"memcached_evictions": [Sample({}, 5.0)]}

    assert found(replace(facts, answers=full)) == [rule]


@pytest.mark.parametrize(("round_trips", "is_named"), [(0.0, True), (9.0, False)])
def test_calls_tell_whether_workers_with_a_cache_are_gone(
    round_trips: float, *, is_named: bool
) -> None:
    """For some minutes after a restart, the backends of earlier workers remain."""
    more = {("sql", "validate"): 0.03, ("orm", "validate"): 0.03}
    calls = [
        healthy_calls(kind, more, statements=49.0, round_trips=round_trips)
        for kind in RATES
    ]
    backends = {"oslo_cache.memcache_pool": 4.0, "dogpile.cache.null": 2.0}
    facts = make_facts(*calls, cache_backends=by("keystone_cache_backend", **backends))

    assert ("C1" in found(facts)) is is_named


def test_revocation_events_that_are_not_cached_are_fetched_again() -> None:
    facts = make_facts(
        healthy_calls(VALIDATION, {("sql", "check_revocation"): 0.005}, statements=2.0),
        memoized=looked_up("revoke", miss=10.0),
        cache_sets=by("keystone_cache_region", role=1.0),
    )

    assert found(facts) == ["C1"]


def test_few_log_ins_are_no_storm_by_chance() -> None:
    calls = [
        healthy_calls(LOGIN, per_second=0.1),
        healthy_calls(VALIDATION, per_second=0.28),
    ]

    assert not found(make_facts(*calls, queue=2.0, requests=1.0))


def test_misses_that_are_not_stored_are_of_sections_that_do_not_cache() -> None:
    """Those of tokens come from log-outs, and cost next to nothing."""
    facts = make_facts(
        rebuilt(),
        memoized=[
            *looked_up("roles", miss=90.0),
            *looked_up("projects", miss=10.0),
            *looked_up("tokens", miss=10.0, hit=10.0),
        ],
        cache_sets=by("keystone_cache_region", roles=0.0, projects=10.0, tokens=10.0),
        invalidations=by("keystone_cache_region", projects=1.0, tokens=2.0),
    )
    (finding,) = judge(facts).findings

    assert finding.rule.id == "C1"
    assert finding.suspicion.savings[VALIDATION].mid == pytest.approx(0.9 * 0.06)


@pytest.mark.parametrize(("seconds", "causes"), [(1.0, ["C1"]), (600.0, [])])
def test_values_that_expire_at_once_are_not_cached(
    seconds: float, causes: list[str]
) -> None:
    facts = make_facts(
        rebuilt(),
        memoized=looked_up("roles", miss=90.0, hit=10.0),
        cache_sets=by("keystone_cache_region", roles=90.0),
        cache_lists=listed("one", "a:11211"),
        cache_expiration=by("keystone_configuration_section", role=seconds),
    )

    assert found(facts) == causes


def test_a_catalog_that_is_not_stored_is_not_too_large() -> None:
    catalogs = make_facts(
        replace(rebuilt(), cells={("sql", "catalog"): 0.06}),
        memoized=looked_up("computed catalog region", miss=10.0),
        cache_sets=by("keystone_cache_region", **{"computed catalog region": 0.0}),
    )

    assert found(catalogs) == ["C1"]


def test_a_statement_that_reads_little_has_most_time_on_slow_storage() -> None:
    """Such as COMMIT, while it waits for a flush."""
    facts = make_facts(
        SQL,
        log_seconds=by("id", commit=0.2, read=0.001),
        log_calls=by("id", commit=10.0, read=10.0),
        log_rows_examined=by("id", commit=0.0),
        log_rows_sent=by("id", commit=0.0),
        sql_call_seconds=by("keystone_sql_call", commit=0.2),
    )

    assert found(facts) == ["D2"]


def test_a_server_of_which_nothing_is_found_is_dead() -> None:
    """Its client skips it without an error, and nobody else watches it."""
    facts = make_facts(
        rebuilt(),
        memoized=looked_up("roles", miss=90.0),
        cache_gets=by("keystone_cache_result", hit=0.0, miss=90.0),
        cache_sets=by("keystone_cache_region", roles=90.0),
    )

    assert found(facts) == ["C2"]


def test_calls_that_take_too_long_fill_workers_that_are_enough() -> None:
    far = slow_cells(0.1, ("cache", "validate"))
    facts = make_facts(
        far,
        cache_call_buckets=histogram(le_0_005=0.0, le_0_02=10.0, le_Inf=10.0),
        cache_call_seconds=0.12,
        workers=1.0,
        queue=20.0,
    )

    assert found(facts)[0] == "C4"
    assert "W1" not in found(facts)


def test_a_lock_that_nobody_gets_is_found() -> None:
    """Statements that still wait are in no log, and their calls have not ended."""
    assert found(make_facts(row_lock_waits=2.0)) == ["D4"]


def test_locks_of_other_services_keep_no_worker_busy() -> None:
    """The database counts the waits of all its clients."""
    idle = by("state", busy=0.3, idle=3.7)
    busy = by("state", busy=2.3, idle=1.7)

    assert found(make_facts(row_lock_waits=2.0, server_workers=idle)) == []
    assert found(make_facts(row_lock_waits=2.0, server_workers=busy)) == ["D4"]


def test_a_memcached_of_others_is_no_cause() -> None:
    """Keystone without a cache, beside a memcached that is full."""
    without = by("keystone_cache_backend", **{"dogpile.cache.null": 4})
    facts = make_facts(
        rebuilt(),
        cache_backends=without,
        memcached_evictions=50.0,
        memcached_connections=1.0,
        memoized=looked_up("role", miss=100.0),
    )

    assert found(facts) == ["C1"]


def test_tokens_without_fernet_keys_are_no_matter_of_keys() -> None:
    assert found(make_facts(slow_cells(0.05, ("token_crypto", "validate")))) == []


def test_opening_tables_is_no_lock() -> None:
    quick = make_facts(
        SQL, log_seconds=by("id", a=0.2), log_lock_seconds=by("id", a=0.06)
    )

    assert "D4" not in found(quick)


def test_another_algorithm_is_compared_with_the_time_of_the_default() -> None:
    """Its cost is not all that its time depends on."""
    labels = {
        "keystone_password_hash_algorithm": "scrypt",
        "keystone_password_hash_cost": "16",
    }
    slow = healthy_calls(LOGIN, {("password_hash", "authenticate"): 0.8})

    assert found(make_facts(slow, hashes=[Sample(labels, 0.5)])) == ["H1"]


def test_dead_memcached_explains_token_caches_of_services() -> None:
    """Services wait for it, and validate their tokens in Keystone meanwhile."""
    services = service_facts(online=10.0, offline=0.0, stalls=5.0)
    dead = CASES["C2"]().answers | {"service_cache_errors": [Sample({}, 5.0)]}
    own = {name: services.answers[name] for name in SERVICE_MEASUREMENTS}

    assert found(services) == ["M2"]
    assert found(make_facts(rebuilt(), **(dead | own))) == ["C2"]


def test_a_token_cache_that_loses_its_tokens_is_down() -> None:
    """Its client has marked the server as dead, and does not wait for it any more."""
    assert found(service_facts(online=10.0, offline=0.0, replayed=0.1)) == ["M2"]


def test_short_stalls_of_a_token_cache_cost_what_the_others_cannot_take() -> None:
    """A fifth of the calls takes most of the time; the others have 10 ms at most."""
    stalls = {
        "service_cache_buckets": histogram(le_0_01=8.0, le_0_1=8.0, le_0_5=10.0),
        "service_cache_seconds": [Sample({}, 0.4)],
        "service_seconds": [Sample({}, 1.5)],
    }
    healthy = service_facts(online=0.1, offline=9.9)

    assert found(replace(healthy, answers=healthy.answers | stalls)) == ["M2"]


def by_method(**values: float) -> list[Sample]:
    return by("http_request_method", **values)


def in_phase(phase: str, **seconds: float) -> list[Sample]:
    """The time in a phase by method."""
    return [
        Sample({"http_request_method": method, "keystone_phase": phase}, value)
        for method, value in seconds.items()
    ]


BY_METHOD = {
    "service_requests": by_method(GET=10.0, PUT=10.0, DELETE=10.0),
    "service_seconds": by_method(GET=0.28, PUT=0.88, DELETE=1.07),
}
"""A service whose writes take three times as long as its reads."""


def test_a_token_cache_that_is_off_costs_the_requests_that_are_short() -> None:
    """It takes a ninth of all their time, and a third of that of the GETs."""
    waits = {
        "service_cells": in_phase("keystone", GET=0.1, PUT=0.08, DELETE=0.07),
        "service_validations": by("keystone_auth_token_validation", online=30.0),
        "service_replayed": by("keystone_auth_token_times", **{"1": 0.1}),
        "service_cache_time": [Sample({}, -1.0)],
    }
    usual = service_facts(online=0.1, offline=9.9)

    (finding,) = judge(
        replace(usual, answers=usual.answers | BY_METHOD | waits)
    ).findings

    assert finding.rule.id == "M1"
    assert finding.share == pytest.approx(0.7 * 0.01 * (1 - 0.1 / 30) / 0.028)
    assert finding.cost == pytest.approx(0.25 * (1 - 0.1 / 30))


def test_stalls_of_a_token_cache_cost_the_requests_that_are_short() -> None:
    stalls = {
        "service_cells": in_phase("cache", GET=0.1, PUT=0.1, DELETE=0.1),
        "service_cache_buckets": histogram(le_0_01=28.5, le_0_1=28.5, le_0_5=30.0),
        "service_cache_seconds": [Sample({}, 0.3)],
    }
    usual = service_facts(online=0.1, offline=29.9)

    (finding,) = judge(
        replace(usual, answers=usual.answers | BY_METHOD | stalls)
    ).findings

    assert finding.rule.id == "M2"
    assert max(finding.shares, key=lambda one: finding.shares[one]) == ("GET", SERVICE)


def test_a_method_of_few_requests_says_nothing() -> None:
    waits = {
        "service_requests": by_method(GET=10.0, PATCH=1.0 / WINDOW.seconds),
        "service_seconds": by_method(GET=0.4, PATCH=1.0 / WINDOW.seconds),
        "service_cells": in_phase("keystone", GET=0.001, PATCH=0.9 / WINDOW.seconds),
    }
    usual = service_facts(online=1.0, offline=9.0, replayed=0.1)

    assert found(replace(usual, answers=usual.answers | waits)) == []


def test_a_token_cache_that_is_off_is_not_down() -> None:
    off = service_facts(online=10.0, offline=0.0, replayed=0.1, service_cache_time=-1.0)

    assert found(off) == ["M1"]


def test_failures_of_a_token_cache_are_evidence() -> None:
    facts = service_facts(online=10.0, offline=0.0, service_cache_errors=3.0)
    (finding,) = judge(facts).findings

    assert ("failed calls to the token cache", 3.0) in {
        (one.text, one.value) for one in finding.suspicion.evidence
    }


PAUSES = histogram(le_0_005=9.0, le_0_5=9.0, le_2=9.5, le_Inf=10.0)
"""Calls to the cache of which some take seconds."""


@pytest.mark.parametrize(
    ("backend", "errors", "cause"),
    [
        ("dogpile.cache.pymemcache", 0.0, "C3"),
        ("dogpile.cache.pymemcache", 1.0, "C2"),
        ("oslo_cache.memcache_pool", 0.0, "C2"),
    ],
)
def test_a_stall_without_an_error_had_no_time_out(
    backend: str, errors: float, cause: str
) -> None:
    facts = make_facts(
        healthy_calls(VALIDATION, {("cache", "validate"): 0.3}),
        cache_backends=by("keystone_cache_backend", **{backend: 4}),
        cache_call_buckets=PAUSES,
        cache_call_seconds=1.3,
        cache_errors=errors,
    )

    assert found(facts) == [cause]


def listed(region: str, *lists: str) -> list[Sample]:
    """Two workers of a region for each list of cache servers."""
    return [
        Sample({"region": region, "keystone_cache_servers": one}, 2.0) for one in lists
    ]


@pytest.mark.parametrize(
    ("lists", "causes"),
    [
        (listed("one", "a:11211,b:11211", "b:11211,a:11211"), ["C9"]),
        (listed("one", "a:11211,b:11211"), []),
        ([*listed("one", "a:11211"), *listed("two", "b:11211")], []),
    ],
)
def test_lists_of_cache_servers_are_compared_within_a_region(
    lists: list[Sample], causes: list[str]
) -> None:
    """Also while a cache is young, which misses without any cause."""
    facts = make_facts(
        rebuilt(),
        memoized=looked_up("role", miss=100.0),
        cache_lists=lists,
        memcached_uptime=60.0,
    )

    assert found(facts) == causes


def test_a_first_log_in_misses_whatever_the_lists_are() -> None:
    more = {("sql", "authenticate"): 0.3}
    facts = make_facts(
        healthy_calls(LOGIN, more, statements=49.0),
        rebuilt(),
        memoized=looked_up("role", miss=100.0),
        cache_lists=listed("", "a:11211", "b:11211"),
    )

    ((first, *_),) = [judge(facts).findings]

    assert first.rule.id == "C9"
    assert first.suspicion.savings[LOGIN].low == 0.0
    validation = first.suspicion.savings[VALIDATION]
    assert validation.high == pytest.approx(2 * validation.low)


@pytest.mark.parametrize(("waits", "first"), [(200.0, "D7"), (0.5, "D2")])
def test_new_connections_are_no_waits_for_one(waits: float, first: str) -> None:
    facts = make_facts(
        SQL,
        proxysql_seconds=0.3,
        proxysql_timeouts=0.0,
        proxysql_waits=waits,
        log_seconds=by("id", a=0.01),
        log_calls=by("id", a=10.0),
    )

    assert found(facts) == [first]


@pytest.mark.parametrize(("phase", "cause"), [("sql_pool", ["D5"]), ("cache", ["W3"])])
def test_threads_that_wait_for_a_connection_do_not_want_to_run(
    phase: str, cause: list[str]
) -> None:
    """Log-ins hash in several threads at a time, so a process uses much of its CPU."""
    facts = make_facts(
        slow_cells(0.1, (phase, "validate")),
        workers=0.1,
        cpu_seconds=0.09,
        sql_pool_waits=5.0 * (phase == "sql_pool"),
    )

    assert found(facts) == cause


def test_waits_for_the_pool_are_no_distance() -> None:
    """The distance explains at most a part of them."""
    facts = make_facts(
        slow_cells(0.05, ("sql", "validate"), ("sql_pool", "validate")),
        sql_call_buckets=SINGLE_CALLS,
        sql_call_seconds=by("keystone_sql_call", read=0.2),
        sql_pool_waits=5.0,
    )
    judged = {one.rule.id: one for one in judge(facts).findings}

    messages = judged["D1"].suspicion.savings[VALIDATION]

    assert {"D1", "D5"} <= judged.keys()
    assert messages.high == pytest.approx(2.2 * messages.mid, rel=0.1)


@pytest.mark.parametrize(("others", "cause"), [(0.0, ["C10"]), (9.0, ["C9"])])
def test_catalogs_that_the_client_does_not_send(
    others: float, cause: list[str]
) -> None:
    """The client knows the limit, so memcached refuses nothing."""
    catalog, shared = "computed catalog region", "shared default"
    memoized = [
        _look_ups(catalog, "hit", 4.0),
        _look_ups(catalog, "miss", 10.0),
        _look_ups(shared, "hit", 90.0),
        _look_ups(shared, "miss", 10 * others),
        _look_ups("tokens", "miss", 9.0),
    ]
    slow = {("sql", "catalog"): 0.03, ("orm", "catalog"): 0.03}
    facts = make_facts(
        healthy_calls(VALIDATION, slow, statements=7.0),
        memoized=memoized,
        invalidations=by("keystone_cache_region", tokens=1.0),
    )

    assert found(facts) == cause


def _look_ups(region: str, result: str, rate: float) -> Sample:
    labels = {"keystone_cache_region": region, "keystone_cache_result": result}
    return Sample(labels, rate)


@pytest.mark.parametrize(("validations", "is_storm"), [(18.0, True), (25.0, False)])
def test_log_ins_beside_few_validations_are_a_storm(
    validations: float, *, is_storm: bool
) -> None:
    facts = make_facts(
        healthy_calls(LOGIN, per_second=7.0),
        healthy_calls(VALIDATION, per_second=validations),
        queue=2.0,
    )

    assert ("H2" in found(facts)) is is_storm


def test_calls_that_wait_for_a_thread_are_a_cost_of_threads() -> None:
    facts = make_facts(workers=0.2, cpu_seconds=0.18, queue=2.0)

    assert found(facts) == ["W3"]


def test_a_full_memcached_is_found_although_it_refuses_its_exporter() -> None:
    facts = make_facts(rebuilt(), memcached_up=0.0, memcached_full=1.0)

    assert found(facts) == ["C6"]


@pytest.mark.parametrize(("waited", "causes"), [(0.01, ["C2"]), (0.5, ["W2"])])
def test_short_stalls_are_the_servers_if_workers_get_a_cpu(
    waited: float, causes: list[str]
) -> None:
    """One call of seven takes 14 ms, and the others 0.2 ms."""
    usual = healthy_calls(VALIDATION).cells
    more = {cell: 9 * usual[cell] for cell in usual if cell[0] == "cache"}
    facts = make_facts(
        healthy_calls(VALIDATION, more),
        cache_call_buckets=histogram(
            le_0_00025=120.0, le_0_01=120.0, le_0_025=140.0, le_Inf=140.0
        ),
        cache_call_seconds=0.304,
        cpu_wait_seconds=waited,
    )

    assert found(facts) == causes


def test_rare_stalls_are_not_why_a_cache_is_slow() -> None:
    """Most of the time in the cache is that of a large catalog."""
    facts = make_facts(
        healthy_calls(VALIDATION, {("cache", "catalog"): 0.02}),
        cache_call_buckets=histogram(le_0_005=90.0, le_0_1=99.9, le_Inf=100.0),
        cache_call_seconds=0.9,
    )

    assert found(facts) == ["A2"]


def test_a_slow_cache_makes_no_step_expensive() -> None:
    """The steps `roles` and `catalog` call the cache as well."""
    usual = healthy_calls(VALIDATION).cells
    slow = {cell: 50 * seconds for cell, seconds in usual.items() if cell[0] == "cache"}
    facts = make_facts(
        healthy_calls(VALIDATION, slow),
        cache_call_buckets=histogram(le_0_005=0.0, le_0_02=10.0, le_Inf=10.0),
        cache_call_seconds=0.12,
    )

    assert found(facts) == ["C4"]


def test_a_large_catalog_is_large_in_the_cache_as_well() -> None:
    """Reading it from the cache takes longer than anything else there."""
    large = healthy_calls(VALIDATION, {("cache", "catalog"): 0.008})

    assert found(make_facts(large)) == ["A2"]


def test_a_relay_before_keystone_is_found_by_the_quickest_probes() -> None:
    """It accepts connections at once, and delays what passes."""
    assert found(probed(quickest=0.02)) == ["N1"]


def test_probes_that_wait_for_a_worker_are_no_network() -> None:
    assert found(probed(quickest=0.001)) == []


def test_all_probes_wait_while_all_workers_are_busy() -> None:
    busy = probed(
        quickest=0.05, workers=0.3, queue=2.0, host_cpu_seconds=by("mode", user=4.0)
    )

    assert found(busy) == []


def test_a_way_longer_than_the_queue_is_found_while_all_workers_are_busy() -> None:
    busy = probed(
        quickest=0.8, workers=0.3, queue=2.0, host_cpu_seconds=by("mode", user=4.0)
    )

    assert found(busy) == ["N1"]


def probed(quickest: float, **others: object) -> Facts:
    """Probes of which a few are quick; the others wait for a worker."""
    return make_facts(
        **others,
        probes=1.0,
        probe_seconds=by("phase", connect=0.0001, processing=0.05),
        probe_buckets=[
            Sample({"phase": "processing", "le": str(bound)}, float(count))
            for bound, count in ((quickest / 2, 0), (quickest, 0.02), (0.1, 1))
        ],
        probed_calls=1.0,
        probed_seconds=0.001,
    )


def test_a_missing_index_explains_events_that_take_long() -> None:
    facts = make_facts(
        slow_cells(0.05, ("sql", "check_revocation")),
        index_present=by("columns", issued_before=0.0),
        events_fetched=9000.0,
        live_events=3000.0,
    )

    assert found(facts) == ["R2"]


def test_a_fetch_of_few_events_is_not_their_cost() -> None:
    """Log-outs empty the cache, so that each check sends a statement: 8 ms, as all."""
    few = {("sql", "check_revocation"): 0.004, ("orm", "check_revocation"): 0.004}
    login = healthy_calls(LOGIN, {("sql", "authenticate"): 0.032}, statements=4.0)
    facts = make_facts(
        login,
        healthy_calls(VALIDATION, few, statements=1.0),
        events_fetched=50.0,
        live_events=500.0,
    )

    assert "R1" not in found(facts)


class AskedFacts(Facts):
    """Facts that note which measurements are looked at."""

    asked: set[str]

    def samples(self, name: str) -> Sequence[Sample]:
        self.asked.add(name)
        return super().samples(name)


def test_log_ins_are_no_cause_while_others_take_the_cpu() -> None:
    busy = {"cpu_wait_seconds": 2.0, "cpu_seconds": 0.5, "queue": 2.0}
    calls = [
        healthy_calls(LOGIN, per_second=8.0),
        healthy_calls(VALIDATION, per_second=1.0),
    ]
    others = by("mode", idle=0.0, user=4.0)

    assert found(make_facts(*calls, **busy, host_cpu_seconds=others)) == ["W2"]
    own = make_facts(*calls, **{**busy, "cpu_seconds": 3.5}, host_cpu_seconds=others)
    assert found(own) == ["H2"]


@pytest.mark.parametrize("rule", RULES)
def test_rule_declares_what_it_asks(rule: str) -> None:
    facts = CASES[rule]()
    noted = AskedFacts(facts.window, facts.calls, facts.answers)
    object.__setattr__(noted, "asked", set())
    case = Case(noted, Expected.shipped(facts))

    RULES[rule].judge(case)

    of_calls = {"calls", "cells", "statements", "round_trips"}
    assert noted.asked - of_calls <= set(RULES[rule].asks)


@given(st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_no_facts_break_a_rule(random: Random) -> None:
    """Values of any size, also zero, and calls without time."""
    facts = CASES[random.choice(list(CASES))]()
    missing = {name for name in SOURCES if random.randrange(10) == 0}
    answers = {
        name: [
            Sample(one.labels, random.choice([0.0, 1e-9, one.value, 1.0, 1e9]))
            for one in random.choice([samples, []])
        ]
        for name, samples in facts.answers.items()
        if MEASUREMENTS[name].source not in missing
    }
    calls = [
        replace(one, statements=random.choice([0.0, one.statements]))
        for one in random.choice([facts.calls, []])
    ]

    diagnosis = judge(Facts(facts.window, calls, answers))

    assert json.loads(json.dumps(as_json(diagnosis)))


def test_answers_that_are_late_at_times_are_of_a_slow_database() -> None:
    """It reads messages late, or packets are lost; its log shows neither."""
    facts = make_facts(
        SQL,
        log_seconds=by("id", a=0.001, b=0.001),
        log_calls=by("id", a=10.0, b=10.0),
        sql_call_seconds=by("keystone_sql_call", read=0.2),
        sql_call_buckets=[
            Sample({"keystone_sql_call": "read", "le": str(bound)}, count)
            for bound, count in ((0.0005, 10.0), (0.02, 20.0))
        ],
    )

    assert found(facts) == ["D2"]


def test_reads_that_take_as_long_as_messages_that_do_not_wait_are_no_cause() -> None:
    buckets = [
        Sample({"keystone_sql_call": name, "le": INF}, 10.0)
        for name in ("read", "rollback")
    ]
    facts = make_facts(
        SQL,
        wsrep_cluster_size=2.0,
        wsrep_causal_reads=5.0,
        sql_call_buckets=buckets,
        sql_call_seconds=by("keystone_sql_call", read=0.2, rollback=0.2),
    )

    assert "D8" not in found(facts)


@pytest.mark.parametrize(
    ("calls", "paused", "mean"),
    [
        # Validations do not write.
        (SQL, 0.9, 0.07),
        # A pause of some milliseconds, and one that costs a commit nothing.
        (REVOKING, 0.001, 0.07),
        (REVOKING, 0.4, 0.019),
    ],
)
def test_pauses_that_cost_calls_nothing_are_no_cause(
    calls: Calls, paused: float, mean: float
) -> None:
    assert "D9" not in found(make_facts(calls, **paused_writes(paused, mean)))


def test_log_ins_of_federated_users_write() -> None:
    federated = replace(WRITING, kind=("POST", "mapped"), per_second=0.1)

    assert found(make_facts(federated, **paused_writes(0.4, 0.07))) == ["D9"]


def test_commits_of_other_services_cost_log_outs_nothing() -> None:
    facts = make_facts(
        replace(healthy_calls(VALIDATION), kind=("DELETE", ""), per_second=0.02),
        log_statements=[Sample({"id": "c", "statement": "COMMIT"}, 1.0)],
        log_seconds=by("id", c=1.2),
        log_calls=by("id", c=100.0),
        sql_call_seconds=by("keystone_sql_call", commit=0.0005),
    )

    assert "D2" not in found(facts)


def test_keystones_own_option_tells_whether_its_reads_wait() -> None:
    facts = CASES["D8"]()
    off = {Option("database", "mysql_wsrep_sync_wait"): Setting("0", Path("x"), 1)}

    configured = replace(facts, configuration=Configuration((Path("x"),), off))

    assert "D8" not in found(configured)


def test_reads_of_other_clients_that_wait_are_not_keystones() -> None:
    facts = CASES["D8"]()
    few = {"wsrep_causal_reads": [Sample({}, 1.0)]}

    assert "D8" not in found(replace(facts, answers={**facts.answers, **few}))


@pytest.mark.parametrize(("bits", "waits"), [(1.0, True), (7.0, True), (6.0, False)])
def test_reads_wait_by_a_bit_of_their_own(bits: float, *, waits: bool) -> None:
    facts = CASES["D8"]()
    configured = {
        "wsrep_causal_reads": [],
        "wsrep_sync_wait": [Sample({}, bits)],
    }

    there = found(replace(facts, answers={**facts.answers, **configured}))
    assert ("D8" in there) == waits


def test_a_server_that_counts_no_causal_read_does_not_wait() -> None:
    facts = CASES["D8"]()
    counted = {"wsrep_causal_reads": [Sample({}, 0.0)]}
    waits = {"wsrep_sync_wait": [Sample({}, 1.0)]}

    none = replace(facts, answers={**facts.answers, **counted, **waits})

    assert "D8" not in found(none)


def slow_commits(per_second: float) -> Facts:
    """Return log-outs that wait a second for their commit."""
    logouts = slow_cells(1.0, ("sql", "revoke"))
    return make_facts(
        replace(logouts, kind=("DELETE", ""), per_second=per_second),
        log_statements=[Sample({"id": "c", "statement": "COMMIT"}, 1.0)],
        log_seconds=by("id", c=per_second, s=0.001),
        sql_call_seconds=by("keystone_sql_call", commit=per_second),
        log_calls=by("id", c=per_second, s=10.0),
    )


def test_slow_commits_cost_the_calls_that_write() -> None:
    (finding,) = judge(slow_commits(RATES[LOGIN] / 5)).findings

    assert finding.rule.id == "D2"
    assert finding.suspicion.savings.keys() == {("DELETE", "")}
    assert finding.suspicion.savings["DELETE", ""].mid == pytest.approx(1.0, rel=0.05)


def slow_statements(disk_reads: float) -> Facts:
    """Return calls whose statements take 10 ms in the database."""
    return make_facts(
        SQL,
        log_seconds=by("id", a=0.1, b=0.1),
        log_calls=by("id", a=10.0, b=10.0),
        sql_call_seconds=by("keystone_sql_call", read=0.2),
        database_disk_reads=disk_reads,
    )


def test_slow_commits_and_reads_from_storage_are_of_the_storage() -> None:
    (commits,) = judge(slow_commits(RATES[LOGIN] / 5)).findings
    (reads,) = judge(slow_statements(disk_reads=4.0)).findings

    assert commits.cause == reads.cause == d2_database_slow.STORAGE


def test_slow_statements_without_reads_from_storage_are_of_the_processor() -> None:
    (finding,) = judge(slow_statements(disk_reads=0.0)).findings

    assert finding.cause == d2_database_slow.PROCESSOR


def test_log_outs_that_wait_for_the_disk_are_no_churn() -> None:
    assert found(slow_commits(RATES[LOGIN]))[0] == "D2"

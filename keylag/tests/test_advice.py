"""Facts, options and conclusions of a result."""

from typing import Any

import pytest

from keylag import load_plans
from keylag.advice import call_facts, call_options, conclusions, format_duration
from keylag.advice_options import OPTIONS, OUTSIDE, QUEUE, find_options
from keylag.breakdown import Breakdown, Call, Run, name_run
from keylag.phases import CATEGORIES, OPERATIONS


def call(cells: dict[str, float], *, client: float = 0.262, wall: float = 0.25) -> Call:
    """Return a call with these shares by cell; categories have the names of phases."""
    categories = dict.fromkeys(CATEGORIES, 0.0)
    for cell, share in cells.items():
        phase, _, operation = cell.partition(".")
        category = "revocation" if operation == "check_revocation" else phase
        categories[category] += share
    return Call(
        method="POST",
        route="/v3/auth/tokens",
        auth_method="password",
        requests=100,
        errors=0,
        failures={},
        refused=0,
        unmeasured=0,
        client_seconds={"mean": client},
        wall_seconds={"mean": wall},
        categories={
            category: {"share": share} for category, share in categories.items()
        },
        phases={},
        operations={},
        cells={cell: {"share": share} for cell, share in cells.items()},
        sql_statements=None,
        cache_calls=None,
    )


def test_facts_and_options_name_the_largest_category() -> None:
    bcrypt = call({"password_hash.authenticate": 0.91, "sql.roles": 0.09})

    assert call_facts(bcrypt) == [
        "POST /v3/auth/tokens (password) takes 262 ms at the client.",
        "91 % of the server's time is password hash, in authenticate.",
    ]
    reuse, cheaper = call_options(bcrypt)
    assert reuse == "Reuse tokens: each log-in checks a password hash."
    assert cheaper == (
        "Lower [identity] password_hash_rounds, which applies to passwords set later. "
        "Costs security: a stolen hash takes proportionally less time to crack."
    )


def test_facts_name_a_large_second_category() -> None:
    facts = call_facts(call({"sql.roles": 0.3, "sql.catalog": 0.3, "orm.roles": 0.4}))

    assert facts[-1] == (
        "60 % of the server's time is SQL, mostly in roles, then ORM with 40 %."
    )


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"cache_backend": "dogpile.cache.null"}, "dogpile.cache.null caches nothing"),
        ({"cache_backend": "oslo_cache.memcache_pool"}, "The cache is on"),
        ({}, "If [cache] backend is dogpile.cache.null"),
    ],
)
def test_sql_options_depend_on_the_cache_backend(
    environment: dict[str, Any], words: str
) -> None:
    first, *others = call_options(call({"sql.roles": 1.0}), environment)

    assert words in first
    assert not [text for text in others if "[cache]" in text]


def test_facts_name_time_outside_keystone() -> None:
    slow = call({"sql.roles": 1.0}, client=0.4, wall=0.1)
    facts = " ".join(call_facts(slow))

    assert "75 % of the client's time passes outside Keystone's workers" in facts
    assert call_options(slow)[0].startswith(
        "Start more Keystone processes, if all workers"
    )


BUSY = {"processes": "2", "threads_per_process": "1", "virtual_users": "10"}


def test_dominant_queue_is_the_first_fact() -> None:
    bcrypt = call({"password_hash.authenticate": 1.0}, client=1.0, wall=0.24)
    latency, queue, server = call_facts(bcrypt, BUSY)

    assert latency.endswith("takes 1000 ms at the client.")
    assert queue == (
        "76 % of the client's time is waiting for a free worker "
        "(10 virtual users, 2 workers)."
    )
    assert server.startswith("100 % of the server's time is password hash")
    first, *others = call_options(bcrypt, BUSY)
    assert first.startswith("Start more Keystone processes")
    assert "Reuse tokens: each log-in checks a password hash." in others
    (conclusion,) = conclusions([run("r", bcrypt)])
    assert "outside its workers 76 %, then password hash" in conclusion


def test_short_queue_follows_the_largest_category() -> None:
    _, server, queue = call_facts(call({"sql.roles": 1.0}, client=0.4, wall=0.3), BUSY)

    assert "is SQL" in server
    assert "25 % of the client's time is waiting" in queue


@pytest.mark.parametrize(
    "known",
    [{**BUSY, "virtual_users": "2"}, {**BUSY, "plan": "service-call"}, {}],
)
def test_time_outside_is_no_queue_while_workers_are_free(
    known: dict[str, str],
) -> None:
    facts = " ".join(call_facts(call({"sql.roles": 1.0}, client=1.0, wall=0.1), known))

    assert "passes outside" in facts
    assert "waiting for a free worker (" not in facts


@pytest.mark.parametrize(
    ("category", "known", "excluded"),
    [
        ("cache", {"cache_backend": "oslo_cache.memcache_pool"}, "memcache_pool"),
        ("cache", {"cache_backend": "oslo_cache.memcache_pool"}, "Redis"),
        ("sql", {"cache_backend": "oslo_cache.memcache_pool"}, "memcache_pool"),
        ("orm", {"cache_backend": "dogpile.cache.redis"}, "memcache_pool"),
        ("other", BUSY, "threads"),
        ("other", {"plan": "service-call"}, "Keystone's own"),
    ],
)
def test_options_exclude_the_present_configuration(
    category: str, known: dict[str, str], excluded: str
) -> None:
    assert find_options(category, known)
    assert not [text for text in find_options(category, known) if excluded in text]


@pytest.mark.parametrize(
    ("category", "known", "words"),
    [
        (
            "cache",
            {"cache_backend": "dogpile.cache.redis"},
            "memcache_pool: with Redis",
        ),
        ("sql", {"cache_backend": "dogpile.cache.null"}, "memcache_pool"),
        ("other", {**BUSY, "threads_per_process": "4"}, "processes instead of threads"),
    ],
)
def test_options_depend_on_cache_and_threads(
    category: str, known: dict[str, str], words: str
) -> None:
    assert any(words in text for text in find_options(category, known))


@pytest.mark.parametrize(
    "words", ["password_hash_rounds", "Delete fewer tokens", "token_cache_time"]
)
def test_options_state_their_security_cost(words: str) -> None:
    found = [str(row) for row in OPTIONS if words in row.text]

    assert found
    assert all(" Costs security: " in text for text in found)


def test_plan_facts_include_virtual_users_if_known() -> None:
    plan = load_plans.find_plan("token-issue")

    assert plan.environment_facts({})["virtual_users"] == "10"
    assert plan.environment_facts({"threads": "3"})["virtual_users"] == "3"
    assert load_plans.LoadPlan("own", plan.path, {}).environment_facts({}) == {
        "plan": "own"
    }


def test_facts_state_missing_measurements() -> None:
    unmeasured = call_facts({**call({}), "categories": {}})
    (failed,) = call_facts({**call({}), "client_seconds": None})
    assert "sent no Server-Timing" in unmeasured[-1]
    assert "none of 100 requests" in failed
    assert call_options({**call({}), "categories": {}}) == []
    assert call_options({**call({}), "client_seconds": None}) == []


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize(
    "cache", [{}, {"cache_backend": "x.null"}, {"cache_backend": "y"}]
)
def test_every_category_has_options(category: str, cache: dict[str, str]) -> None:
    operation = "check_revocation" if category == "revocation" else OPERATIONS[0]
    phase = "cache" if category == "revocation" else category

    assert call_facts(call({f"{phase}.{operation}": 1.0}), cache)
    assert find_options(category, cache)
    assert find_options(QUEUE, cache)
    assert find_options(OUTSIDE, cache)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2624, "262 ms"), (0.0374, "37.4 ms"), (0.0056, "5.60 ms")]
)
def test_durations_have_three_significant_digits(seconds: float, text: str) -> None:
    assert text == format_duration(seconds)


def run(name: str, one: Call) -> Run:
    """Return a run with one call."""
    empty = Breakdown(
        calls=[one], setup_requests=0, quantiles="", warnings=[], environment={}
    )
    return name_run(name, empty)


def test_conclusions_have_one_line_per_call() -> None:
    runs = [
        run("off", call({"sql.roles": 0.8})),
        run("on", call({"cache.roles": 0.6})),
    ]

    assert conclusions(runs) == [
        "POST /v3/auth/tokens (password): SQL 80 % (off), cache 60 % (on)"
    ]
    assert conclusions([]) == ["No call was measured, so there is no breakdown."]

"""What is said about a result."""

from typing import Any

import pytest

from keylag import plans
from keylag.advice import conclusion, may_help, milliseconds, sentence
from keylag.breakdown import Breakdown, Call, Run, named
from keylag.options import OUTSIDE, QUEUE, TABLE, options
from keylag.phases import CATEGORIES, OPERATIONS


def call(cells: dict[str, float], *, client: float = 0.262, wall: float = 0.25) -> Call:
    """Make a call of these shares; the category is the phase's own name."""
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


def test_a_sentence_says_where_and_what_to_change() -> None:
    """The first question of whoever reads the tables, answered."""
    bcrypt = call({"password_hash.authenticate": 0.91, "sql.roles": 0.09})

    assert sentence(bcrypt) == (
        "POST /v3/auth/tokens (password) takes 262 ms at the client; 91 % of the "
        "server's time is password hash, in authenticate."
    )
    reuse, cheaper = may_help(bcrypt)
    assert reuse == "reusing tokens: each log-in checks a password"
    assert cheaper == (
        "lowering [identity] password_hash_rounds, for passwords set from then on "
        "(costs security: a stolen hash is cheaper to guess, by as much)"
    )


def test_a_second_large_category_is_named() -> None:
    """Half the truth would send the reader the wrong way."""
    said = sentence(call({"sql.roles": 0.3, "sql.catalog": 0.3, "orm.roles": 0.4}))

    assert (
        "60 % of the server's time is SQL, mostly in roles, then ORM with 40 %" in said
    )


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"cache_backend": "dogpile.cache.null"}, "backend is dogpile.cache.null, so"),
        ({"cache_backend": "oslo_cache.memcache_pool"}, "the cache is on"),
        ({}, "if [cache] backend is dogpile.cache.null"),
    ],
)
def test_advice_on_sql_knows_the_cache(environment: dict[str, Any], words: str) -> None:
    """Nobody is told to switch on what is on."""
    (text,) = may_help(call({"sql.roles": 1.0}), environment)

    assert words in text


def test_time_outside_keystone_is_named() -> None:
    """A queue before the workers is no category of theirs."""
    slow = call({"sql.roles": 1.0}, client=0.4, wall=0.1)
    said = sentence(slow)

    assert "75 % of the client's time passed outside Keystone's workers" in said
    assert may_help(slow)[0].startswith("more processes, if all of Keystone's workers")


BUSY = {"processes": "2", "threads_per_process": "1", "virtual_users": "10"}


def test_a_queue_is_known_by_its_users_and_workers_and_comes_first() -> None:
    """Most of the time is in it, and more processes shorten it."""
    bcrypt = call({"password_hash.authenticate": 1.0}, client=1.0, wall=0.24)
    said = sentence(bcrypt, BUSY)

    queue = said.index("76 % of the client's time was waiting for a free worker (10 vi")
    assert queue < said.index("100 % of the server's time is password hash")
    first, *others = may_help(bcrypt, BUSY)
    assert first.startswith("more processes shorten the wait")
    assert "reusing tokens: each log-in checks a password" in others
    assert "outside its workers 76 %, then password hash" in conclusion(
        [run("r", bcrypt)]
    )


def test_a_short_queue_comes_after_what_takes_longer() -> None:
    """Below half of the client's time."""
    said = sentence(call({"sql.roles": 1.0}, client=0.4, wall=0.3), BUSY)

    assert said.index("is SQL") < said.index("25 % of the client's time was waiting")


@pytest.mark.parametrize(
    "known",
    [{**BUSY, "virtual_users": "2"}, {**BUSY, "plan": "service-call"}, {}],
)
def test_time_outside_is_no_queue_where_workers_were_free(
    known: dict[str, str],
) -> None:
    """Nor where the workers are a service's, or nobody knows how many there are."""
    said = sentence(call({"sql.roles": 1.0}, client=1.0, wall=0.1), known)

    assert "passed outside" in said
    assert "waiting for a free worker (" not in said


@pytest.mark.parametrize(
    ("category", "known", "never"),
    [
        ("cache", {"cache_backend": "oslo_cache.memcache_pool"}, "memcache_pool"),
        ("cache", {"cache_backend": "oslo_cache.memcache_pool"}, "Redis"),
        ("sql", {"cache_backend": "oslo_cache.memcache_pool"}, "memcache_pool"),
        ("orm", {"cache_backend": "dogpile.cache.redis"}, "memcache_pool"),
        ("other", BUSY, "threads"),
        ("other", {"plan": "service-call"}, "Keystone's own"),
    ],
)
def test_nobody_is_told_to_change_to_what_there_is(
    category: str, known: dict[str, str], never: str
) -> None:
    """Options fit the configuration."""
    assert options(category, known)
    assert not [text for text in options(category, known) if never in text]


@pytest.mark.parametrize(
    ("category", "known", "words"),
    [
        (
            "cache",
            {"cache_backend": "dogpile.cache.redis"},
            "memcache_pool: with Redis",
        ),
        ("sql", {"cache_backend": "dogpile.cache.null"}, "memcache_pool"),
        ("other", {**BUSY, "threads_per_process": "4"}, "processes rather than"),
    ],
)
def test_what_fits_is_told(category: str, known: dict[str, str], words: str) -> None:
    """By the cache, and by the threads."""
    assert any(words in text for text in options(category, known))


@pytest.mark.parametrize(
    "words", ["password_hash_rounds", "token deletions", "token_cache_time"]
)
def test_what_costs_security_says_so(words: str) -> None:
    """Wherever it is told."""
    found = [str(row) for row in TABLE if words in row.text]

    assert found
    assert all("costs security: " in text for text in found)


def test_a_load_says_how_many_users_it_had() -> None:
    """A plan of one's own may not know."""
    plan = plans.find("token-issue")

    assert plan.environment({})["virtual_users"] == "10"
    assert plan.environment({"threads": "3"})["virtual_users"] == "3"
    assert plans.Plan("own", plan.path, {}).environment({}) == {"plan": "own"}


def test_a_call_without_measurement_says_so() -> None:
    """No advice without knowledge."""
    assert "sent no Server-Timing" in sentence({**call({}), "categories": {}})
    assert "none of 100 requests" in sentence({**call({}), "client_seconds": None})
    assert may_help({**call({}), "categories": {}}) == []
    assert may_help({**call({}), "client_seconds": None}) == []


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize(
    "cache", [{}, {"cache_backend": "x.null"}, {"cache_backend": "y"}]
)
def test_every_category_has_advice(category: str, cache: dict[str, str]) -> None:
    """Whatever a run and its Keystone are, there is something to say."""
    operation = "check_revocation" if category == "revocation" else OPERATIONS[0]
    phase = "cache" if category == "revocation" else category

    assert sentence(call({f"{phase}.{operation}": 1.0}), cache)
    assert options(category, cache)
    assert options(QUEUE, cache)
    assert options(OUTSIDE, cache)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2624, "262 ms"), (0.0374, "37.4 ms"), (0.0056, "5.60 ms")]
)
def test_times_have_three_figures(seconds: float, text: str) -> None:
    """More would claim a precision that is not there."""
    assert text == milliseconds(seconds)


def run(name: str, one: Call) -> Run:
    """Make a run of one call."""
    empty = Breakdown(
        calls=[one], setup_requests=0, quantiles="", warnings=[], environment={}
    )
    return named(name, empty)


def test_the_conclusion_is_one_line_over_all_runs() -> None:
    """Each call once, with its largest category in every run."""
    runs = [
        run("off", call({"sql.roles": 0.8})),
        run("on", call({"cache.roles": 0.6})),
    ]

    assert conclusion(runs) == (
        "Where the time goes. "
        "POST /v3/auth/tokens (password): SQL 80 % (off), cache 60 % (on)."
    )
    assert "not known" in conclusion([])

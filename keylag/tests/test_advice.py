"""What is said about a result."""

from typing import Any

import pytest

from keylag.advice import TABLE, conclusion, milliseconds, sentence
from keylag.breakdown import Breakdown, Call, Run, named
from keylag.phases import BLOCKS, OPERATIONS


def call(cells: dict[str, float], *, client: float = 0.262, wall: float = 0.25) -> Call:
    """Make a call of these shares; the block is the phase's own name."""
    blocks = dict.fromkeys(BLOCKS, 0.0)
    for cell, share in cells.items():
        phase, _, operation = cell.partition(".")
        block = "revocation" if operation == "check_revocation" else phase
        blocks[block] += share
    return Call(
        method="POST",
        route="/v3/auth/tokens",
        auth_method="password",
        requests=100,
        errors=0,
        refused=0,
        unmeasured=0,
        client_seconds={"mean": client},
        wall_seconds={"mean": wall},
        blocks={block: {"share": share} for block, share in blocks.items()},
        phases={},
        operations={},
        cells={cell: {"share": share} for cell, share in cells.items()},
        sql_statements=None,
        cache_calls=None,
    )


def test_a_sentence_says_where_and_what_to_change() -> None:
    """The first question of whoever reads the tables, answered."""
    said = sentence(call({"password_hash.authenticate": 0.91, "sql.roles": 0.09}))

    assert said == (
        "POST /v3/auth/tokens (password) takes 262 ms at the client; 91 % of the "
        "server's time is password hash, in authenticate; lowering [identity] "
        "password_hash_rounds (for passwords set from then on) or reusing tokens is "
        "what would help; more processes raise the rate, not the speed of one call."
    )


def test_a_second_large_block_is_named() -> None:
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
    assert words in sentence(call({"sql.roles": 1.0}), environment)


def test_time_outside_keystone_is_named() -> None:
    """A queue before the workers is no block of theirs."""
    said = sentence(call({"sql.roles": 1.0}, client=0.4, wall=0.1))

    assert "75 % of the client's time passed outside Keystone's workers" in said


def test_a_call_without_measurement_says_so() -> None:
    """No advice without knowledge."""
    assert "sent no Server-Timing" in sentence({**call({}), "blocks": {}})
    assert "none of 100 requests" in sentence({**call({}), "client_seconds": None})


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(
    "cache", [{}, {"cache_backend": "x.null"}, {"cache_backend": "y"}]
)
def test_every_block_has_advice(block: str, cache: dict[str, str]) -> None:
    """Whatever a run and its Keystone are, there is something to say."""
    operation = "check_revocation" if block == "revocation" else OPERATIONS[0]
    phase = "cache" if block == "revocation" else block

    assert sentence(call({f"{phase}.{operation}": 1.0}), cache)
    assert any(row.block == block and row.holds(cache) for row in TABLE)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2624, "262 ms"), (0.0374, "37.4 ms"), (0.0056, "5.60 ms")]
)
def test_times_have_three_figures(seconds: float, text: str) -> None:
    """More would claim a precision that is not there."""
    assert text == milliseconds(seconds)


def test_the_conclusion_is_one_line_over_all_runs() -> None:
    """Each call once, with its largest block in every run."""

    def run(name: str, cells: dict[str, float]) -> Run:
        empty = Breakdown(
            calls=[call(cells)],
            setup_requests=0,
            quantiles="",
            warnings=[],
            environment={},
        )
        return named(name, empty)

    said = conclusion([run("off", {"sql.roles": 0.8}), run("on", {"cache.roles": 0.6})])

    assert said == (
        "Where the time goes. "
        "POST /v3/auth/tokens (password): SQL 80 % (off), cache 60 % (on)."
    )

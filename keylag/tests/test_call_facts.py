"""Facts on the calls of a result."""

import pytest

from keylag import load_plans
from keylag.breakdown import Breakdown, Call, Run, name_run
from keylag.call_facts import call_facts, format_duration, largest_parts
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


def test_facts_name_the_largest_category() -> None:
    bcrypt = call({"password_hash.authenticate": 0.91, "sql.roles": 0.09})

    assert call_facts(bcrypt) == [
        "POST /v3/auth/tokens (password) takes 262 ms at the client.",
        "91 % of the server's time is password hash, in authenticate.",
    ]


def test_facts_name_a_large_second_category() -> None:
    facts = call_facts(call({"sql.roles": 0.3, "sql.catalog": 0.3, "orm.roles": 0.4}))

    assert facts[-1] == (
        "60 % of the server's time is SQL, mostly in roles, then ORM with 40 %."
    )


def test_facts_name_time_outside_keystone() -> None:
    slow = call({"sql.roles": 1.0}, client=0.4, wall=0.1)
    facts = " ".join(call_facts(slow))

    assert "75 % of the client's time passes outside Keystone's workers" in facts


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
    (part,) = largest_parts(run("r", bcrypt))
    assert "outside the workers, 76 % of the client's time; password hash" in part


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
    assert largest_parts(run("r", {**call({}), "categories": {}})) == []
    assert largest_parts(run("r", {**call({}), "client_seconds": None})) == []


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_has_facts(category: str) -> None:
    operation = "check_revocation" if category == "revocation" else OPERATIONS[0]
    phase = "cache" if category == "revocation" else category

    _, server, *_ = call_facts(call({f"{phase}.{operation}": 1.0}))

    assert server.startswith("100 % of the server's time is ")


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


def test_largest_part_of_each_call_is_a_sentence() -> None:
    (part,) = largest_parts(run("off", call({"sql.roles": 0.8})))

    assert part == (
        "POST /v3/auth/tokens (password): the largest part is SQL, 80 % of the server's"
        " time."
    )

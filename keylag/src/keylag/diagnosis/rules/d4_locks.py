"""D4: statements wait for locks that a transaction holds."""

import math
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import savings
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

STUCK: Final = 0.5
"""Workers, at least: a call that waits for a lock keeps a whole one busy."""
OPENING: Final = 0.35
"""Share of the statements' time that counts as their locks' without any wait."""


def _beyond(case: Case, calls: Calls) -> float:
    """Return the SQL time of a call beyond a healthy one; all if that is unknown."""
    if case.expected.seconds(calls, ["sql"], ()) is None:
        return calls.spent(["sql"])
    return case.excess(calls, ["sql"])


def _judge(case: Case) -> Suspicion | str:
    logged = case.facts.number("log_seconds")
    locked = max(case.facts.number("log_lock_seconds") - OPENING * logged, 0.0)
    if case.facts.has("row_lock_seconds"):
        locked = max(locked, case.facts.number("row_lock_seconds"))
    whole = max(logged, locked)
    # Waits that have not ended are in no log and in no call.
    waiting = (
        case.facts.number("row_lock_waits") if case.facts.has("row_lock_waits") else 0.0
    )
    if not (locked or waiting):
        return "No statement waited for a lock."
    inside = min(ratio(locked, max(case.driver_seconds, whole)), 1.0)
    served = case.facts.served
    spent = math.fsum(one.per_second * one.spent(["sql"]) for one in served)
    beyond = math.fsum(one.per_second * _beyond(case, one) for one in served)

    def waited(one: Calls) -> float:
        # Locks are of some tables, so they slow some calls only.
        part = ratio(_beyond(case, one) * spent, beyond)
        return min(inside * part, one.spent(["sql"]))

    evidence = [
        Evidence("time waiting for locks", locked, "s/s", "log_lock_seconds", 0),
        Evidence(
            "its share of the database's time",
            ratio(locked, whole),
            "of all",
            "log_seconds",
            0,
        ),
        Evidence(
            "statements that wait for a row lock",
            waiting,
            "at a time",
            "row_lock_waits",
            0,
        ),
    ]
    unfinished = min(max(waiting - locked, 0.0), _stuck_workers(case))
    return Suspicion(
        savings(case, waited, low=0.8), evidence, worker_seconds=unfinished or None
    )


def _stuck_workers(case: Case) -> float:
    """Return the busy workers beyond those of calls that ended; infinite if unknown.

    The database counts the waits of all its clients, so only these may be Keystone's.
    """
    if case.busy_workers is None:
        return math.inf
    stuck = case.busy_workers - case.facts.busy_seconds
    return stuck if stuck >= STUCK else 0.0


RULE: Final = Rule(
    id="D4",
    name="locks",
    cause="Statements wait for locks: a transaction holds rows or tables.",
    judge=_judge,
    asks=(
        "log_lock_seconds",
        "row_lock_seconds",
        "row_lock_waits",
        "server_workers",
        "log_seconds",
        "sql_call_seconds",
    ),
    fixes=(
        Fix(
            "the database",
            "find the transaction: SELECT * FROM information_schema.innodb_trx ORDER BY"
            " trx_started",
            "Killing it rolls back its changes.",
        ),
        Fix(
            "the program that holds them",
            "shorter transactions; backups with --single-transaction",
            "None.",
        ),
    ),
    gain="The time in which statements wait for locks, by the SQL time that calls take"
    " beyond healthy ones.",
    threshold="A sixth of a call, as for all causes. The database counts the wait; it"
    " counts opening tables too, up to 35 % of the time of quick statements.",
    panel="sql: Waiting for locks",
    explains=("D2", "D3", "D5"),
)

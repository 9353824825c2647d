"""D4: statements wait for locks that a transaction holds."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import savings
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion


def _judge(case: Case) -> Suspicion | str:
    locked = case.facts.number("log_lock_seconds")
    if case.facts.has("row_lock_seconds"):
        locked = max(locked, case.facts.number("row_lock_seconds"))
    whole = max(case.facts.number("log_seconds"), locked)
    if not whole or not locked:
        return "No statement waited for a lock."
    inside = min(ratio(locked, max(case.driver_seconds, whole)), 1.0)

    def waited(one: Calls) -> float:
        return inside * one.spent(["sql"])

    evidence = [
        Evidence("time waiting for locks", locked, "s/s", "log_lock_seconds", 0),
        Evidence(
            "its share of the database's time", locked / whole, "", "log_seconds", 0
        ),
    ]
    return Suspicion(savings(case, waited, low=0.8), evidence)


RULE: Final = Rule(
    id="D4",
    name="locks",
    cause="Statements wait for locks: a transaction holds rows or tables.",
    judge=_judge,
    asks=(
        "log_lock_seconds",
        "row_lock_seconds",
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
    gain="The share of SQL time in which statements wait for locks.",
    threshold="A sixth of a call, as for all causes; the database counts the wait.",
    panel="sql: Waiting for locks",
    explains=("D2", "D3", "D5"),
)

"""D5: threads wait for a connection of Keystone's own pool."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.rule import Evidence, Rule, Suspicion


def _judge(case: Case) -> Suspicion | str:
    waits = case.facts.number("sql_pool_waits")
    if not waits:
        return "No thread waited for a connection of the pool."
    checkouts = case.facts.number("sql_checkouts")
    evidence = [
        Evidence("waits for a connection", waits, "waits/s", "sql_pool_waits", 0),
        Evidence("connections taken", checkouts, "check-outs/s", "sql_checkouts"),
    ]
    found = savings(case, lambda calls: case.excess(calls, ["sql_pool"]), low=0.5)
    return Suspicion(found, evidence)


RULE: Final = Rule(
    id="D5",
    name="pool-exhausted",
    cause="Threads wait for a connection: Keystone's pool has fewer than"
    " the worker has threads.",
    judge=_judge,
    asks=(
        "sql_pool_waits",
        "sql_checkouts",
    ),
    fixes=(
        option(
            "database",
            "max_pool_size = as many as threads",
            "With max_overflow, and times all workers, it must stay within the"
            " database's max_connections.",
        ),
        option("database", "max_overflow = 50", "Its default; as for max_pool_size."),
    ),
    gain="The time in the pool beyond that of a healthy Keystone.",
    threshold="The pool was found empty; its time says what that costs.",
    panel="sql: Wait for a connection",
    explains=("D6",),
)

"""D6: Keystone opens connections to the database again and again."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion


def _judge(case: Case) -> Suspicion | str:
    connects = case.facts.number("sql_connects")
    requests = case.facts.number("requests")
    if not connects:
        return "Connections to the database are reused."
    by_call = case.facts.by("sql_call_seconds", "keystone_sql_call")
    whole = sum(by_call.values())
    share = ratio(by_call.get("connect", 0.0), whole)

    def connecting(one: Calls) -> float:
        return share * one.spent(["sql", "sql_pool"])

    evidence = [
        Evidence(
            "connects", ratio(connects, requests), "per request", "sql_connects", 0
        ),
        Evidence("their time", share, "of that in SQL", "sql_call_seconds", 0),
        Evidence(
            "time of a connect",
            by_call.get("connect", 0.0) / connects,
            "s",
            "sql_call_seconds",
        ),
    ]
    return Suspicion(savings(case, connecting), evidence)


RULE: Final = Rule(
    id="D6",
    name="connects",
    cause="Keystone opens connections to the database again and again instead of"
    " reusing them.",
    judge=_judge,
    asks=(
        "sql_connects",
        "requests",
        "sql_call_seconds",
    ),
    fixes=(
        option(
            "database",
            "connection_recycle_time = 3600",
            "It must be shorter than the database's wait_timeout.",
        ),
        option(
            "database",
            "max_pool_size = as many as threads of a worker; 5 is its default",
            "Each worker keeps so many connections to the database.",
        ),
        Fix(
            "my.cnf",
            "skip_name_resolve = ON",
            "Accounts must name addresses, not host names.",
        ),
    ),
    gain="The time of connects in token calls.",
    threshold="A sixth of a call, as for all causes: a pool opens a few at the start.",
    panel="sql: Pool",
)

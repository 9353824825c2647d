"""D9: a slow Galera node pauses the writes of all."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import savings
from keylag.diagnosis.facts import Calls
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

WRITES: Final = ("write", "commit")


def _judge(case: Case) -> Suspicion | str:
    if not case.facts.number("wsrep_cluster_size"):
        return "The database is no Galera cluster."
    paused = case.facts.number("wsrep_paused")
    if not paused:
        return "Flow control did not pause replication."
    by_call = case.facts.by("sql_call_seconds", "keystone_sql_call")
    whole = sum(by_call.values())
    writing = sum(by_call.get(name, 0.0) for name in WRITES)
    share = writing / whole if whole else 0.0

    def waited(one: Calls) -> float:
        return share * one.spent(["sql"])

    evidence = [
        Evidence("flow control paused", paused, "of the time", "wsrep_paused", 0),
        Evidence("share of writes in SQL", share, "", "sql_call_seconds"),
    ]
    return Suspicion(savings(case, waited), evidence)


RULE: Final = Rule(
    id="D9",
    name="galera-flow-control",
    cause="A slow Galera node pauses the writes of all nodes.",
    judge=_judge,
    asks=(
        "wsrep_cluster_size",
        "wsrep_paused",
        "sql_call_seconds",
    ),
    fixes=(
        Fix(
            "the slow node",
            "its storage and network; wsrep_local_recv_queue names it",
            "Without the node the cluster has one copy less.",
        ),
        Fix(
            "my.cnf",
            "wsrep_slave_threads = number of CPUs",
            "None, if binary logging uses rows.",
        ),
    ),
    gain="The time of writes and commits.",
    threshold="Any pause counts; the time of writes says what it costs.",
    panel="sql: Time in SQL per call",
    explains=("D2", "D4"),
)

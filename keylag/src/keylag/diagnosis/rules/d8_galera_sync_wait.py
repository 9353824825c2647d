"""D8: each read waits until its Galera node has applied all writes."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Rule, Suspicion

NEAR_SECONDS: Final = 0.0008
"""A read from a near node that waits for nothing, with the driver's time."""


def _judge(case: Case) -> Suspicion | str:
    if not case.facts.number("wsrep_cluster_size"):
        return "The database is no Galera cluster."
    waits = case.facts.number("wsrep_sync_wait")
    own = case.facts.configuration.value("database", "mysql_wsrep_sync_wait")
    if own.isdigit():
        # Keystone sets it for its own connections; the server's is another one.
        waits = float(own)
    if not waits:
        return "wsrep_sync_wait is off."
    by_call = case.facts.by("sql_call_seconds", "keystone_sql_call")
    reads = max(
        case.facts.buckets("sql_call_buckets", keystone_sql_call="read").values(),
        default=0.0,
    )
    if not reads:
        return "Nothing was read."
    reading = by_call.get("read", 0.0)
    mean = reading / reads
    usual = case.scaled(NEAR_SECONDS)
    if mean <= usual:
        return "Reads take no longer than they should."
    share = (1 - usual / mean) * ratio(reading, sum(by_call.values()))

    def waited(one: Calls) -> float:
        return share * one.spent(["sql"])

    evidence = [
        Evidence(
            "wsrep_sync_wait",
            waits,
            "",
            "wsrep_sync_wait",
            0,
        ),
        Evidence("mean of a read", mean, "s", "sql_call_seconds", usual),
    ]
    return Suspicion(savings(case, waited), evidence)


RULE: Final = Rule(
    id="D8",
    name="galera-sync-wait",
    cause="Each read waits until its Galera node has applied all writes.",
    judge=_judge,
    asks=(
        "wsrep_cluster_size",
        "wsrep_sync_wait",
        "sql_call_seconds",
        "sql_call_buckets",
    ),
    fixes=(
        option(
            "database",
            "mysql_wsrep_sync_wait = 0",
            "A node may answer with old data: send writes and reads to one node.",
        ),
    ),
    gain="The time of reads beyond that of a near node.",
    threshold="wsrep_sync_wait is on; the time of reads says what it costs.",
    panel="sql: Time in SQL per call",
    explains=("D1", "D2"),
)

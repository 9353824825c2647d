"""D8: each read waits until its Galera node has applied all writes."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Rule, Suspicion

NEAR_READ_SECONDS: Final = 0.0008
"""A read from a near node that waits for nothing, with the driver's time."""


OF_READS: Final = 1
"""The bit of wsrep_sync_wait by which reads wait."""
WAITING: Final = 0.25
"""Share of the reads that wait at least: the first one of a transaction does."""
NOT_WAITING: Final = ("ping", "rollback")
"""Messages that the server answers at once, whatever wsrep_sync_wait is."""


def _waits(case: Case) -> bool:
    """Return whether Keystone's reads wait: as configured, or as the server counts."""
    own = case.facts.configuration.value("database", "mysql_wsrep_sync_wait")
    if own.isdigit():
        # Keystone sets it for its own connections; the server's is another one.
        return bool(int(own) & OF_READS)
    if not case.facts.samples("wsrep_causal_reads"):
        return bool(int(case.facts.number("wsrep_sync_wait")) & OF_READS)
    # The server counts the reads of all its clients; fewer are not Keystone's.
    reads = case.sql_calls(keystone_sql_call="read")
    return case.facts.number("wsrep_causal_reads") >= WAITING * reads > 0


def _judge(case: Case) -> Suspicion | str:
    if not case.facts.number("wsrep_cluster_size"):
        return "The database is no Galera cluster."
    if not _waits(case):
        return "No statement waits for the cluster: wsrep_sync_wait is off."
    by_call = case.facts.by("sql_call_seconds", "keystone_sql_call")
    if not case.sql_calls(keystone_sql_call="read"):
        return "Nothing was read."
    mean = case.sql_mean("read")
    at_once = ratio(
        sum(by_call.get(name, 0.0) for name in NOT_WAITING),
        sum(case.sql_calls(keystone_sql_call=name) for name in NOT_WAITING),
    )
    usual = max(case.scaled(NEAR_READ_SECONDS), at_once)
    if mean <= usual:
        return "Reads take no longer than messages that do not wait."
    reading = ratio(by_call.get("read", 0.0), sum(by_call.values()))
    share = (1 - usual / mean) * reading

    def waited(one: Calls) -> float:
        return share * one.spent(["sql"])

    evidence = [
        Evidence(
            "statements that waited for the cluster",
            case.facts.number("wsrep_causal_reads"),
            "statements/s",
            "wsrep_causal_reads",
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
        "wsrep_causal_reads",
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
    gain="The time of reads beyond that of messages that do not wait.",
    threshold="The server counts the waits of all its clients: with fewer than a"
    " quarter of Keystone's reads, they are others'. Reads cost what they take beyond"
    " 0.8 ms, which a near node needs with the driver's own time, scaled by the"
    " machine's speed, or beyond messages that do not wait, if those take longer.",
    panel="galera: Statements that waited",
    explains=("D1", "D2"),
)

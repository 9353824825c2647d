"""D1: each message to the database takes long, because it is far away."""

from typing import Final

from keylag.diagnosis.case import NEAR_SECONDS, Case
from keylag.diagnosis.common import option
from keylag.diagnosis.facts import Calls
from keylag.diagnosis.rule import Evidence, Rule, Saving, Suspicion


def _judge(case: Case) -> Suspicion | str:
    mean = case.mean_driver_call_seconds
    if not mean:
        return "No message went to the database."
    near = case.scaled(NEAR_SECONDS)
    quickest = case.fastest_round_trip_seconds
    if quickest <= near:
        return f"The quickest messages take {quickest * 1000:.1f} ms."
    share = case.distance_share

    def saving(one: Calls) -> Saving:
        messages = share * one.spent(["sql"])
        # Who waits for a connection waits for the messages of another thread.
        waiting = share * one.spent(["sql_pool"])
        return Saving(0.7 * messages, messages, 1.1 * (messages + waiting))

    evidence = [
        Evidence(
            "quickest tenth of messages to the database",
            quickest,
            "s",
            "sql_call_buckets",
            near,
        ),
        Evidence(
            "mean of a message to the database",
            mean,
            "s",
            "sql_call_seconds",
        ),
    ]
    found = {one.kind: saving(one) for one in case.facts.served}
    return Suspicion({kind: one for kind, one in found.items() if one.mid}, evidence)


RULE: Final = Rule(
    id="D1",
    name="database-far",
    cause="The database is far away: even the quickest message to it takes long.",
    judge=_judge,
    asks=(
        "log_seconds",
        "sql_call_seconds",
        "sql_call_buckets",
    ),
    fixes=(
        option(
            "database",
            "connection = a server near Keystone that takes writes: the primary, or a"
            " node of Galera",
            "A replica refuses writes, so log-outs and changes would fail. A node of"
            " Galera may answer with old data, unless mysql_wsrep_sync_wait is 1.",
        ),
        option(
            "cache",
            "backend = oslo_cache.memcache_pool",
            "It saves most messages: see C1.",
        ),
    ),
    gain="Messages to the database per token call, times the time of a usual one beyond"
    " its time in the database and that of a near server; at most also the wait for a"
    " connection of the pool.",
    threshold="The quickest tenth of messages takes longer than 0.5 ms: a server in"
    " the same rack needs less, with the driver's own time, and a distance is in every"
    " message. The limit is scaled by the machine's speed.",
    panel="sql: Time in SQL per call",
    explains=("D6",),
)

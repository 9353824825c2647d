"""D9: a slow Galera node pauses the writes of all."""

import math
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import (
    USUAL_WRITE_SECONDS,
    WRITES,
    on_a_faster_disk,
    savings,
    write_wait,
    writing_seconds,
)
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

LEAST_PAUSED: Final = 0.01
"""A shorter pause, as a share of the time, is usual in a cluster that is written to."""


def _judge(case: Case) -> Suspicion | str:
    if not case.facts.number("wsrep_cluster_size"):
        return "The database is no Galera cluster."
    paused = case.facts.number("wsrep_paused")
    if paused < LEAST_PAUSED:
        return "Flow control hardly paused replication."
    mean = math.fsum(case.sql_mean(name) for name in WRITES)
    evidence = [
        Evidence("flow control paused", paused, "of the time", "wsrep_paused", 0),
        Evidence(
            "mean of a write and its commit",
            mean,
            "s",
            "sql_call_seconds",
            USUAL_WRITE_SECONDS / 2,
        ),
    ]
    writing = writing_seconds(case)
    waits = savings(case, lambda calls: write_wait(case, calls, writing))
    return Suspicion(on_a_faster_disk(case, waits), evidence)


RULE: Final = Rule(
    id="D9",
    name="galera-flow-control",
    cause="A slow Galera node pauses the writes of all nodes.",
    judge=_judge,
    asks=(
        "wsrep_cluster_size",
        "wsrep_paused",
        "sql_call_seconds",
        "sql_call_buckets",
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
    gain="The time of writes and commits beyond 40 ms, in the calls that write; at most"
    " also these 40 ms.",
    threshold="Pauses of 1 % of the time: a cluster that is written to has shorter"
    " ones. Writes and commits cost what they take beyond 40 ms, which a log-out's two"
    " commits need with a usual disk.",
    panel="galera: Paused by flow control",
    explains=("D2", "D4"),
)

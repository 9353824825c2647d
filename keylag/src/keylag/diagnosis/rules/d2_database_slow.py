"""D2: the database takes long for all statements: its storage or CPU is slow."""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from keylag.diagnosis.case import NEAR_SECONDS, Case
from keylag.diagnosis.common import (
    READ_FOR_NOTHING,
    USUAL_WRITE_SECONDS,
    on_a_faster_disk,
    rows_per_sent,
    savings,
    write_wait,
    writing_seconds,
)
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

USUAL_SECONDS: Final = 0.0004
"""A statement of a token call inside a healthy database."""
ONE_STATEMENT: Final = 0.6
"""With more of the time in a statement that reads many rows, that is the cause."""
LOCKED: Final = 0.5
"""With more of the time in locks, they are the cause; opening tables counts, too."""
MANY_READS: Final = 0.1
"""With more reads from storage for a statement, the data do not fit in memory."""
STORAGE: Final = (
    "The database waits for its storage: commits, or reads of what is not in memory."
)
PROCESSOR: Final = (
    "The database takes long for statements that read little, and does not wait for"
    " storage: its CPU is slow or taken."
)


def _commits(case: Case) -> set[str]:
    """Return the ids of commits in the log."""
    return {
        one.labels["id"]
        for one in case.facts.samples("log_statements")
        if one.labels.get("statement") == "COMMIT"
    }


def _sum(values: Mapping[str, float], ids: Iterable[str]) -> float:
    return math.fsum(values.get(id_, 0.0) for id_ in ids)


def _outside_log(case: Case) -> float:
    """Return the time of answers beyond the database's log and the distance.

    A server that gets no CPU reads a message late, and a network may lose it; the
    distance is in all messages, and these are only some.
    """
    if not case.facts.has("sql_call_seconds", "sql_call_buckets"):
        return 0.0
    by_call = case.facts.by("sql_call_seconds", "keystone_sql_call")
    answers = sum(by_call.values()) - by_call.get("connect", 0.0)
    way = max(case.database_round_trip_seconds, case.scaled(NEAR_SECONDS))
    logged = case.facts.number("log_seconds") + case.sql_calls() * way
    return max(answers * (1 - case.cpu_wait_share) - logged, 0.0)


def _judge(case: Case) -> Suspicion | str:
    seconds = case.facts.by("log_seconds", "id")
    times = case.facts.by("log_calls", "id")
    whole, calls = sum(seconds.values()), case.facts.number("log_calls")
    if not calls:
        return "The slow log has no statement of this time."
    worst = max(seconds, key=lambda one: seconds[one], default="")
    reads_much = rows_per_sent(case, worst) >= READ_FOR_NOTHING
    if reads_much and seconds[worst] > ONE_STATEMENT * whole:
        return "One statement has most of the database's time: see D3."
    if case.facts.number("log_lock_seconds") > LOCKED * whole:
        return "Statements wait for locks: see D4."
    commits = _commits(case)
    waited = _outside_log(case)
    usual = case.scaled(USUAL_SECONDS)
    beyond = math.fsum(
        max(seconds[id_] - times.get(id_, 0.0) * usual, 0.0)
        for id_ in seconds.keys() - commits
    )
    share = min(ratio(beyond + waited, case.driver_seconds), 1.0)
    committing = _sum(seconds, commits)
    mean_commit = ratio(committing, _sum(times, commits))
    if case.facts.has("sql_call_seconds"):
        # The server commits for others too, and the log has no distance.
        committing = min(committing, writing_seconds(case))

    def waits(one: Calls) -> float:
        return write_wait(case, one, committing)

    def slow(one: Calls) -> float:
        return waits(one) + share * (one.spent(["sql"]) - waits(one))

    evidence = [
        Evidence(
            "mean of a statement in the database, without commits",
            ratio(whole - _sum(seconds, commits), calls - _sum(times, commits)),
            "s",
            "log_seconds",
            usual,
        ),
        Evidence(
            "mean of a commit, which waits for the disk",
            mean_commit,
            "s",
            "log_seconds",
            USUAL_WRITE_SECONDS / 2,
        ),
        Evidence(
            "time of answers beyond its log and the distance",
            waited,
            "s/s",
            "sql_call_seconds",
            0,
        ),
    ]
    reads = 0.0
    if case.facts.has("database_disk_reads"):
        reads = ratio(case.facts.number("database_disk_reads"), calls)
        text = "reads from storage for a statement"
        evidence.append(Evidence(text, reads, "", "database_disk_reads", 0))
    if case.facts.has("host_io_pressure"):
        pressure = case.facts.number("host_io_pressure")
        evidence.append(
            Evidence(
                "tasks waited for storage",
                pressure,
                "of the time",
                "host_io_pressure",
                0,
            )
        )
    if case.facts.has("threads_running"):
        running = case.facts.number("threads_running")
        evidence.append(
            Evidence("busy threads of the database", running, "", "threads_running")
        )
    found = on_a_faster_disk(case, savings(case, slow))
    in_commits = math.fsum(one.per_second * waits(one) for one in case.facts.served)
    in_all = math.fsum(one.per_second * slow(one) for one in case.facts.served)
    on_storage = in_commits > in_all / 2 or reads > MANY_READS
    return Suspicion(found, evidence, cause=STORAGE if on_storage else PROCESSOR)


RULE: Final = Rule(
    id="D2",
    name="database-slow",
    cause="The database takes long for statements that read little: its storage or its"
    " CPU is slow.",
    judge=_judge,
    asks=(
        "log_seconds",
        "log_calls",
        "log_lock_seconds",
        "log_rows_examined",
        "log_rows_sent",
        "log_statements",
        "database_disk_reads",
        "host_io_pressure",
        "threads_running",
        "sql_call_seconds",
        "sql_call_buckets",
        "cpu_wait_seconds",
        "other_seconds",
    ),
    fixes=(
        Fix("the database's host", "faster storage, or more CPU", "Those of a move."),
        Fix(
            "my.cnf",
            "innodb_flush_log_at_trx_commit = 2, and sync_binlog = 0 with a binary log,"
            " if commits wait for the disk",
            "If the host fails, every database on the server loses its last second: a"
            " token that was revoked in it is valid again.",
        ),
        Fix(
            "my.cnf",
            "innodb_buffer_pool_size = most of the memory",
            "The host needs that memory.",
        ),
        Fix(
            "the Galera cluster, if there is one",
            "look for a far or slow node, on which commits wait too",
            "None.",
        ),
        Fix(
            "the network to the database",
            "look for lost packets: ss -ti, nstat -az TcpRetransSegs",
            "None.",
        ),
    ),
    gain="The time inside the database beyond that of a healthy one. Commits cost the"
    " calls that write, at most also the 40 ms of a usual disk. Answers that come late,"
    " although its log and the quickest ones are fast, count too.",
    threshold="Time counts beyond 0.4 ms for a statement of a token call, which reads"
    " few rows, and 0.5 ms for its way, as in D1, both scaled by the machine's speed;"
    " and beyond 20 ms for each of a log-out's two commits, which wait for the disk. A"
    " slow server slows all statements: one that reads 50 rows for each row sent has"
    " at most 60 % of the time, else see D3. Locks have at most 50 %, else see D4:"
    " opening tables counts as locking, up to 35 %. The storage is to blame if commits"
    " have most of the cost, or if one statement in ten reads from it; else the CPU.",
    panel="sql: Time in SQL per call",
    explains=("D1", "D5"),
)

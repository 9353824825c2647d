"""W3: threads of one process wait for each other, as Python runs one at a time."""

from dataclasses import replace
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import savings
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion
from keylag.services.base import MAX_PROCESSES

ONE: Final = 1.1
"""More busy seconds per second than this need several threads in a process."""
FULL: Final = 0.7
"""Part of a CPU from which the threads of a process wait for each other."""


def _judge(case: Case) -> Suspicion | str:
    if case.busy_share < ONE:
        return f"A process answers {case.busy_share:.1f} requests at a time."
    used = ratio(case.facts.number("cpu_seconds"), case.facts.number("workers"))
    if used < FULL:
        return f"A process uses {used:.0%} of a CPU: its threads wait for others."

    queued = case.queue_seconds if case.facts.has("queue", "requests") else 0.0

    def waited(one: Calls) -> float:
        running = one.seconds * (1 - case.cpu_wait_share)
        # A thread that waits for a connection or a far database does not want to run.
        away = case.excess(one, ["sql_pool"]) + case.distance_share * one.spent(["sql"])
        return queued + max(running - case.usual_seconds(one) - away, 0.0)

    evidence = [
        Evidence("requests at a time in a process", case.busy_share, "", "cells", 1),
        Evidence("CPUs that a process uses", used, "CPUs", "cpu_seconds"),
        Evidence("wait for a free thread", queued, "s", "queue", 0),
    ]
    return Suspicion(savings(case, waited, low=0.5), evidence)


RULE: Final = Rule(
    id="W3",
    name="threads",
    cause="Threads of a process wait for each other: Python runs one at a time.",
    judge=_judge,
    asks=(
        "cpu_seconds",
        "cpu_wait_seconds",
        "sql_call_buckets",
        "sql_call_seconds",
        "log_seconds",
        "workers",
        "queue",
        "requests",
        "other_seconds",
    ),
    fixes=(
        Fix(
            "uwsgi.ini, or WSGIDaemonProcess of Apache",
            "processes = threads x processes of today, threads = 1",
            "Each process takes some 100 MB and its own connections to the database.",
        ),
    ),
    gain="The time beyond that of a healthy call and of the waits for a CPU, for a"
    " connection and for a far database: a thread waits for Python after each answer"
    " of the cache or the database. Calls that wait for a free thread save that, too.",
    threshold="A process has more than 1.1 requests at a time: one thread has one, and"
    " calls that began before the window add a little. It uses 70 % of a CPU, so"
    " Python is taken seven of ten times that a thread wants to run; with less,"
    " threads wait for servers.",
    panel="workers: Busy share of a worker",
    explains=("A1", "A2", "C4", "D1", "D2", "T1", "W1", "W2"),
    fixed_options=lambda options: replace(
        options,
        processes=min(options.processes * options.threads, MAX_PROCESSES),
        threads=1,
    ),
)

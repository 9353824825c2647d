"""W3: threads of one process wait for each other, as Python runs one at a time."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import savings
from keylag.diagnosis.facts import Calls
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

ONE: Final = 1.1
"""More busy seconds per second than this need several threads in a process."""


def _judge(case: Case) -> Suspicion | str:
    if case.busy_share < ONE:
        return "Processes answer one request at a time."
    slowness = case.expected.slowness
    usual = 1 / (1 - min(case.cpu_wait_share, 0.9))
    if slowness <= usual:
        return "Computing takes no longer than it should."
    share = 1 - usual / slowness

    def waited(calls: Calls) -> float:
        return share * (calls.seconds - calls.spent(["sql", "cache", "ldap"]))

    evidence = [
        Evidence("requests at a time in a process", case.busy_share, "", "cells", 1),
        Evidence(
            "time of computing, relative to one thread", slowness, "times", "cells", 1
        ),
    ]
    return Suspicion(savings(case, waited, low=0.5), evidence)


RULE: Final = Rule(
    id="W3",
    name="threads",
    cause="Threads of a process wait for each other: Python runs one at a time.",
    judge=_judge,
    asks=(
        "cpu_wait_seconds",
        "workers",
        "other_seconds",
    ),
    fixes=(
        Fix(
            "uwsgi.ini",
            "processes = threads x processes of today, threads = 1",
            "Each process takes some 100 MB and its own connections to the database.",
        ),
    ),
    gain="Computing time beyond that of one thread and of the wait for a CPU.",
    threshold="More than one request at a time in a process, and computing that takes"
    " longer than the wait for a CPU explains.",
    panel="workers: Busy share of a worker",
)

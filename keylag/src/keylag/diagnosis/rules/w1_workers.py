"""W1: Keystone has too few workers; calls wait although the host has CPU to spare."""

from dataclasses import replace
from typing import Final

from keylag.diagnosis.case import BUSY, Case
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion
from keylag.services.base import MAX_PROCESSES

IDLE: Final = 0.2
"""With less idle CPU more workers only share it."""
FULL_ANYWAY: Final = 0.6
"""With a smaller share, calls that take too long keep the workers busy."""


def _judge(case: Case) -> Suspicion | str:
    if case.busy_share < BUSY:
        return f"{1 - case.busy_share:.0%} of the workers' time is idle."
    if not case.queue_seconds:
        return "No connection waits for a worker."
    usual = case.usual_busy_share
    if usual < FULL_ANYWAY:
        return f"Healthy calls would keep the workers {usual:.0%} busy."
    idle = case.idle_cpu_share
    if idle < IDLE:
        return f"Only {idle:.0%} of the CPU time is idle: more workers would share it."
    waits = {
        one.kind: Saving.about(case.queue_seconds, high=1.0)
        for one in case.facts.served
    }
    evidence = [
        Evidence("busy workers", case.busy_share, "of all", "cells"),
        Evidence("waiting connections", case.facts.number("queue"), "", "queue", 0),
        Evidence("wait for a worker", case.queue_seconds, "s", "queue", 0),
        Evidence("idle CPU time", idle, "of all", "host_cpu_seconds"),
    ]
    return Suspicion(waits, evidence)


RULE: Final = Rule(
    id="W1",
    name="workers",
    cause="Too few workers: calls wait for a free one, and the host has CPU to spare.",
    judge=_judge,
    asks=(
        "queue",
        "host_cpu_seconds",
        "workers",
        "requests",
        "other_seconds",
    ),
    fixes=(
        Fix(
            "uwsgi.ini",
            "processes = twice as many",
            "Each process takes some 100 MB and up to max_pool_size + max_overflow"
            " connections to the database.",
        ),
    ),
    gain="The wait for a worker, by Little's law: waiting connections by requests per"
    " second.",
    threshold="Workers are 80 % busy and connections wait: from there on calls queue."
    " Healthy calls would keep them 60 % busy: full workers slow each other a little,"
    " and what slows calls more is another cause. A fifth of the CPU time is idle:"
    " with less, tasks queue for CPUs too, and more workers only share them.",
    panel="workers: Waiting connections",
    explains=("N1",),
    fixed_options=lambda options: replace(
        options, processes=min(2 * options.processes, MAX_PROCESSES)
    ),
)

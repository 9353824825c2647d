"""W2: workers wait for a CPU, because others use it or a limit stops them."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import savings
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

USUAL: Final = 0.15
"""Share of a healthy Keystone that keeps all CPUs busy: its own workers and servers
wait for each other."""


def _judge(case: Case) -> Suspicion | str:
    waited, stolen = case.facts.number("cpu_wait_seconds"), _stolen_share(case)
    if not (waited or stolen):
        return "No worker waited for a CPU."
    # A worker that the hypervisor stops does not wait for a CPU: it seems to run.
    share = _combined(case.cpu_wait_share, stolen)
    evidence = [
        Evidence(
            "time that workers waited for a CPU", waited, "s/s", "cpu_wait_seconds"
        ),
        Evidence(
            "its share of their busy time, with what the hypervisor took",
            share,
            "of the time",
            "cells",
            0,
        ),
    ]
    if case.facts.has("host_cpu_seconds"):
        cpus = case.facts.number("host_cpus")
        evidence += [
            Evidence(
                "busy CPUs of the hosts",
                case.used_cpus,
                f"of {cpus:g}",
                "host_cpu_seconds",
            ),
            Evidence(
                "CPUs used by workers",
                case.facts.number("cpu_seconds"),
                "CPUs",
                "cpu_seconds",
            ),
            Evidence(
                "CPU taken by the hypervisor",
                _stolen_cpus(case),
                "CPUs",
                "host_cpu_seconds",
                0,
            ),
        ]
    if case.facts.has("throttled_seconds"):
        throttled = case.facts.number("throttled_seconds")
        limit = Evidence(
            "time stopped by a CPU limit", throttled, "s/s", "throttled_seconds", 0
        )
        # It is that of the exporter's group: zero does not mean that there is none.
        if throttled:
            evidence.append(limit)
    beyond = max(1 - ratio(_usual_share(case), share), 0.0)

    def lost(calls: Calls) -> float:
        # The hypervisor takes nothing from messages on their way to a far database.
        away = case.distance_share * calls.spent(["sql", "sql_pool"])
        here = 1 - ratio(away, calls.seconds)
        return _combined(case.cpu_wait_share, stolen * here) * calls.seconds

    return Suspicion(savings(case, lost, low=beyond, high=1.5), evidence)


def _combined(waited_share: float, stolen_share: float) -> float:
    return 1 - (1 - waited_share) * (1 - stolen_share)


def _stolen_share(case: Case) -> float:
    """Return the share of running programs' time that the hypervisor took."""
    if not case.facts.has("host_cpu_seconds"):
        return 0.0
    return ratio(_stolen_cpus(case), case.used_cpus)


def _stolen_cpus(case: Case) -> float:
    return case.facts.by("host_cpu_seconds", "mode").get("steal", 0.0)


def _usual_share(case: Case) -> float:
    """Return the share that is usual for workers that are as busy."""
    if not case.facts.has("host_cpus"):
        return USUAL
    busy = ratio(case.facts.busy_seconds, case.facts.number("host_cpus"))
    return USUAL * min(busy, 1)


RULE: Final = Rule(
    id="W2",
    name="cpu-starved",
    cause="Workers wait for a CPU: other programs, the hypervisor, a limit or other"
    " workers take it.",
    judge=_judge,
    asks=(
        "cpu_wait_seconds",
        "host_cpu_seconds",
        "host_cpus",
        "cpu_seconds",
        "throttled_seconds",
        "other_seconds",
        "log_seconds",
        "sql_call_seconds",
        "sql_call_buckets",
    ),
    fixes=(
        Fix(
            "the host",
            "move the other programs away, or give Keystone more CPUs",
            "None.",
        ),
        Fix(
            "the container or unit",
            "raise the CPU limit (--cpus, CPUQuota, limits.cpu)",
            "Keystone may take the CPU of its neighbours.",
        ),
    ),
    gain="The workers' wait for a CPU, as a share of their busy time, and the share of"
    " their CPU time that the hypervisor took.",
    threshold="A sixth of the busy time, as for all causes, beyond 15 % that workers"
    " and servers of one host wait for each other if there is a busy worker for each"
    " CPU, and less if there are fewer. The kernel counts it.",
    panel="host: CPU time by program",
    explains=("C4", "D1", "D2", "A1", "A2", "T1", "W1", "W3", "N1"),
)

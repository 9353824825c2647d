"""H2: clients log in again and again instead of reusing their tokens."""

import math
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion

BUSY: Final = 0.7
"""With fewer busy workers the log-ins cost nobody else time."""
GREW: Final = 2.0
"""Log-ins per second, relative to the baseline."""
REUSE: Final = 3.0
"""Other token calls per log-in; healthy clients use a token several times."""
DEVIATIONS: Final = 2.0
"""Standard deviations of that ratio by which chance may have lowered it."""


def _judge(case: Case) -> Suspicion | str:
    logins = [one for one in case.facts.served if one.kind[0] == "POST"]
    rate = sum(one.per_second for one in logins)
    queues = case.facts.has("queue") and case.queue_seconds > 0
    if case.busy_share < BUSY and not queues:
        return f"{1 - case.busy_share:.0%} of the workers' time is idle."
    usual = case.expected.login_rate
    others = sum(one.per_second for one in case.facts.served) - rate
    if usual is not None and rate < GREW * usual:
        return f"{ratio(rate, usual):.1f} times the log-ins of the baseline."
    if usual is None and _most_others(case, others, rate) >= REUSE * rate:
        calls = f"{ratio(others, rate):.1f} other calls"
        return f"Tokens are reused: {calls} for each log-in."
    if case.others_take_cpu:
        return "Other programs use most of the CPU: see W2."
    spared = 1 - 1 / GREW
    usual_seconds = sum(one.per_second * case.usual_seconds(one) for one in logins)
    seconds = usual_seconds * spared
    evidence = [
        Evidence("log-ins", rate, "calls/s", "calls", usual),
        Evidence("other token calls", others, "calls/s", "calls"),
        Evidence("busy workers", case.busy_share, "of all", "cells"),
    ]
    waits = {
        one.kind: Saving(wait / 4, spared * wait, wait)
        for one in case.facts.served
        if (wait := _wait(case, one))
    }
    return Suspicion(waits, evidence, worker_seconds=seconds)


def _most_others(case: Case, others: float, logins: float) -> float:
    """Return the other calls per second, with as many more as chance may have cost."""
    counts = [rate * case.facts.window.seconds for rate in (others, logins)]
    if not all(counts):
        return others
    deviation = math.sqrt(math.fsum(1 / count for count in counts))
    return others * math.exp(DEVIATIONS * deviation)


def _wait(case: Case, calls: Calls) -> float:
    """Return the time that a call waits for a worker and for a CPU."""
    return case.queue_seconds + case.cpu_wait_share * calls.seconds


RULE: Final = Rule(
    id="H2",
    name="login-storm",
    cause="Clients log in again and again instead of reusing their tokens.",
    judge=_judge,
    asks=(
        "queue",
        "requests",
        "cpu_wait_seconds",
        "cpu_seconds",
        "host_cpu_seconds",
        "workers",
        "other_seconds",
    ),
    fixes=(
        Fix(
            "the client",
            "keep the token until it expires (a keystoneauth session does)",
            "None.",
        ),
    ),
    gain="Half of the workers' time that log-ins take on a healthy Keystone, and of"
    " what all calls wait for it.",
    threshold="Workers are 70 % busy, or calls queue: a log-in holds a worker as long"
    " as forty validations, so others wait sooner than at the 80 % of W1. Log-ins are"
    " twice those of the baseline, as half of them are then new; without one, fewer"
    " than three other calls follow each, as a token that is used once has a"
    " validation and a log-out; two standard deviations of that ratio are left to"
    " chance. If workers wait a sixth of their time for a CPU and"
    " other programs use most of it, see W2.",
    panel="tokens: Calls per second",
    explains=("W1", "W2", "N1"),
)

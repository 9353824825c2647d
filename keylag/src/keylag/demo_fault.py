"""A fault in the demo: planted for one more run, and looked for by the diagnosis."""

import time
from pathlib import Path
from typing import Final

from rich.console import Console

from keylag import demo
from keylag.breakdown import Run
from keylag.diagnosis.case import Case
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.facts import Window
from keylag.diagnosis.prometheus import Prometheus
from keylag.diagnosis.ranking import Diagnosis, diagnose
from keylag.diagnosis.reading import read_calls, read_facts
from keylag.faults import planting
from keylag.faults.model import GET, POST, Fault, FaultUsageError
from keylag.faults.registry import FAULTS
from keylag.stack import Stack
from keylag.steps import show_step

HEALTHY_RUN: Final = "memcache-pool"
"""The run with whose stack the fault is planted, and with which it is compared."""
EXPORT_SECONDS: Final = 4.0
"""After this time Prometheus has the last calls: a worker exports them once a second,
and Prometheus asks once a second."""


def find_fault(name: str) -> Fault:
    """Return a fault by id or name; raises FaultUsageError if the demo cannot have it.

    A fault may need a service that the demo does not start.
    """
    fault = planting.find_fault(name)
    if fault not in plantable():
        names = ", ".join(one.key for one in plantable())
        needs = " ".join(one.advice for one in fault.needs)
        why = needs or "It slows no call that the demo sends. Start a stack."
        message = (
            f"The demo cannot show {fault.title}. {why} Then plant it with"
            f" `keylag fault start {fault.key}`. The demo can show {names}."
        )
        raise FaultUsageError(message)
    return fault


def plantable() -> list[Fault]:
    """Return the faults that the demo's stack can have and its calls can show."""
    options = demo.stack_options(HEALTHY_RUN)
    return [
        one
        for one in FAULTS.values()
        if {POST, GET} & {*one.slows} and all(need.met(options) for need in one.needs)
    ]


def measure(
    fault: Fault, stack: Stack, healthy: Window, out: Path, console: Console
) -> tuple[Run, Diagnosis]:
    """Measure a run with the fault, and diagnose it; takes the fault back.

    `healthy` is the time of the run without it.  Raises the errors of
    `planting.plant`, `load_runner.send_load` and `Prometheus.query`.
    """
    console.print(f"Planting {fault.title}: {fault.summary}", highlight=False)
    with planting.planted(stack, fault):
        measured, _ = demo.measure_run(fault.name, stack, out / fault.name, console)
        with show_step(console, "Waiting for the last metrics"):
            time.sleep(EXPORT_SECONDS)
        prometheus = Prometheus(stack.url("prometheus"))
        facts = read_facts(prometheus, Window(measured.window.start, time.time()))
        expected = Expected.of(read_calls(prometheus, healthy))
        found = diagnose(Case(facts, expected))
    console.print(f"Took back {fault.title}.", highlight=False)
    return measured.run, found


def verdict(fault: Fault, diagnosis: Diagnosis) -> str:
    """Return the planted cause beside those that were found."""
    names = [f"{one.rule.id} {one.rule.name}" for one in diagnosis.findings]
    return f"planted: {fault.title}; found: {', then '.join(names) or 'nothing'}"

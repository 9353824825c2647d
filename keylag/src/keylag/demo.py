"""The demo: the breakdown of token calls without and with a cache.

    measured = measure(stack, out, console)

Both runs send the same load of 100 logins and 100 validations, first with Keystone's
default cache backend and then with memcached.
"""

import json
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil
from rich.console import Console

from keylag import (
    jtl,
    load_plans,
    load_target,
    run_environment,
    sample_cloud,
    sql_comparison,
)
from keylag.breakdown import Run, compute_breakdown, name_run
from keylag.diagnosis.facts import Window
from keylag.diagnosis.ranking import Diagnosis
from keylag.jtl import Sample
from keylag.load_runner import send_load
from keylag.report import write_html
from keylag.services import exporters, keystone, mariadb, memcached, redis
from keylag.stack import Stack, StackOptions
from keylag.state import write_output
from keylag.steps import show_step
from keylag.tools.venvs import keystone_version

RUN_CACHES: Final[Mapping[str, str]] = {
    "cache-off": "null",
    "memcache-pool": "memcache_pool",
}
"""Keystone's cache in each run, by the name of the run."""
PLANS: Final = ("token-issue", "token-validate")
SERVICES: Final = (
    mariadb.SERVICE,
    memcached.SERVICE,
    redis.SERVICE,
    keystone.SERVICE,
    exporters.SERVICE,
)
"""Servers that the measurement needs; the usual others show its results."""
REVOCATION_EVENTS: Final = 50
SAMPLE_CLOUD: Final = sample_cloud.initial_data()


@dataclass(frozen=True)
class Measured:
    """A run, and the time of its loads."""

    run: Run
    window: Window


def stack_options(run: str) -> StackOptions:
    """Return the options of the stack for a run; its metrics carry the run's name."""
    return StackOptions(
        cache=RUN_CACHES[run],
        environment={"OTEL_RESOURCE_ATTRIBUTES": f"keylag.run={run}"},
    )


def measure(stack: Stack, out: Path, console: Console) -> list[Measured]:
    """Measure every run on a stack that is up, and write the samples below `out`.

    Raises the errors of `load_runner.send_load` and of `Stack.restart`.
    """
    with show_step(console, "Revoking tokens"):
        events = sample_cloud.revoke_tokens(stack, REVOCATION_EVENTS)
    console.print(f"{events} live revocation events")
    all_measured = []
    for name in RUN_CACHES:
        options = stack_options(name)
        if options != stack.options:
            console.print(f"Restarting Keystone with cache {RUN_CACHES[name]}")
            stack.restart("keystone", options=options)
        before = sql_comparison.wait_for_logged(stack)
        measured, samples = measure_run(name, stack, out / name, console)
        after = sql_comparison.wait_for_logged(stack)
        both = sql_comparison.compare_sides(samples, before, after)
        measured.run["sql_sides"] = {
            method: asdict(sides) for method, sides in both.items()
        }
        all_measured.append(measured)
    return all_measured


def measure_run(
    name: str, stack: Stack, out: Path, console: Console
) -> tuple[Measured, list[Sample]]:
    """Send the loads of a run; return it with its samples.

    Raises the errors of `load_runner.send_load`.
    """
    start = time.time()
    target = load_target.from_stack(stack)
    samples: list[Sample] = []
    warnings: list[str] = []
    for plan_name in PLANS:
        plan = load_plans.find_plan(plan_name)
        result = send_load(plan, target, {}, out / plan.name, console)
        if result.interrupted:
            raise KeyboardInterrupt
        plan_samples, plan_warnings = jtl.read_samples(result.samples)
        samples += plan_samples
        warnings += plan_warnings
    users = plan.environment_facts({})[run_environment.VIRTUAL_USERS]
    facts = {
        **target.environment,
        run_environment.VIRTUAL_USERS: users,
        **_measurement_environment(),
    }
    run = name_run(name, compute_breakdown(samples, facts, warnings))
    return Measured(run, Window(start, time.time())), samples


def _measurement_environment() -> dict[str, str]:
    return {
        "keystone": keystone_version(),
        "keylag": version("keylag"),
        "cpus": str(psutil.cpu_count()),
        "system": platform.platform(),
        "load": ", ".join(PLANS) + ": 100 requests each, 10 threads started in 10 s",
        "revocation_events": f"at least {REVOCATION_EVENTS}",
    }


def write_results(
    runs: Sequence[Run], diagnoses: Mapping[str, Diagnosis], out: Path
) -> tuple[Path, Path]:
    """Write breakdown.json and report.html, and return their paths."""
    breakdown, report = out / "breakdown.json", out / "report.html"
    write_output(breakdown, json.dumps({"runs": runs}, indent=2) + "\n")
    write_html(runs, diagnoses, report)
    return breakdown, report

"""The main job: real token calls of a real Keystone, broken down.

    runs = measure(stack, out, console)

Two runs, Keystone's default cache backend first, each with the same load of a
hundred logins and a hundred validations.
"""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil
from rich.console import Console

from keylag import cloud, jtl, options, plans, sql_sides, target
from keylag.breakdown import Run, break_down, named
from keylag.jtl import Sample
from keylag.prepared import Prepared
from keylag.report import write_html
from keylag.sending import send
from keylag.services import exporters, keystone, mariadb, memcached, redis
from keylag.stack import Stack, StackOptions
from keylag.state import write_output
from keylag.tools.venvs import keystone_version

RUNS: Final[Mapping[str, str]] = {"cache-off": "null", "memcache-pool": "memcache_pool"}
"""Name of the run, and the cache it gives Keystone."""
PLANS: Final = ("token-issue", "token-validate")
SERVICES: Final = (
    mariadb.SERVICE,
    memcached.SERVICE,
    redis.SERVICE,
    keystone.SERVICE,
    exporters.SERVICE,
)
"""Servers that the measurement needs; the others show what it finds."""
REVOCATION_EVENTS: Final = 50
CLOUD: Final = Prepared(cloud.KEY, cloud.fill)


def options_of(run: str) -> StackOptions:
    """Return how Keystone is started for a run: its metrics say which it is."""
    return StackOptions(
        cache=RUNS[run],
        environment={"OTEL_RESOURCE_ATTRIBUTES": f"keylag.run={run}"},
    )


def measure(stack: Stack, out: Path, console: Console) -> list[Run]:
    """Measure every run on a stack that is up; leaves the samples below `out`."""
    events = cloud.revoke_tokens(stack, REVOCATION_EVENTS)
    console.print(f"{events} live revocation events")
    runs = []
    for name in RUNS:
        options = options_of(name)
        if options != stack.options:
            console.print(f"Restarting Keystone with the cache {RUNS[name]}")
            stack.restart("keystone", options=options)
        before = sql_sides.logged(stack)
        run, samples = _run(name, stack, out / name, console)
        both = sql_sides.compare(samples, before, sql_sides.logged(stack))
        run["sql_sides"] = {method: asdict(sides) for method, sides in both.items()}
        runs.append(run)
    return runs


def _run(
    name: str, stack: Stack, out: Path, console: Console
) -> tuple[Run, list[Sample]]:
    """Send every plan's load; return the breakdown of their samples, and these."""
    where = target.of_stack(stack)
    samples: list[Sample] = []
    warnings: list[str] = []
    for plan_name in PLANS:
        plan = plans.find(plan_name)
        result = send(plan, where, {}, out / plan.name, console)
        if result.interrupted:
            raise KeyboardInterrupt
        read, notes = jtl.read(result.samples)
        samples += read
        warnings += notes
    users = plan.environment({})[options.VIRTUAL_USERS]
    facts = {**where.environment, options.VIRTUAL_USERS: users, **_machine()}
    return named(name, break_down(samples, facts, warnings)), samples


def _machine() -> dict[str, str]:
    """Return what a reader has to know to judge the figures."""
    return {
        "keystone": keystone_version(),
        "keylag": version("keylag"),
        "cpus": str(psutil.cpu_count()),
        "system": platform.platform(),
        "load": ", ".join(PLANS) + ": 100 requests each, 10 threads started in 10 s",
        "revocation_events": f"at least {REVOCATION_EVENTS}",
    }


def save(runs: Sequence[Run], out: Path) -> tuple[Path, Path]:
    """Write breakdown.json and report.html; returns their paths."""
    breakdown, report = out / "breakdown.json", out / "report.html"
    write_output(breakdown, json.dumps({"runs": runs}, indent=2) + "\n")
    write_html(runs, report)
    return breakdown, report

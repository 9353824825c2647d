"""Record the environment of a run: versions, hardware and other load."""

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import psutil

from keylag import results
from keylag.experiment.obstacles import measure_disturbance
from keylag.experiment.plan import Plan
from keylag.experiment.settings import Arm
from keylag.experiment.stack_setup import services_for
from keylag.tools import Tools, find_program
from keylag.tools.venvs import keystone_version

OPTIONAL_PROGRAMS: Final = {"proxysql": "proxysql", "redis": "redis-server"}
"""The programs of servers that only some arms have, by service."""
OVERHEAD_RESULT: Final = results.OUT / "bench/overhead/latest/overhead.json"


def collect(plan: Plan) -> dict[str, Any]:
    """Return versions, hardware, processor usage and the settings of every arm."""
    arms = {name: plan.resolved_arm(name) for name in plan.arm_names}
    return {
        **(_remote_versions(plan) if plan.remote else _stack_versions(arms.values())),
        "keylag": version("keylag"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor_model(),
        "processors": len(usable_processors()),
        "processors_of_the_machine": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        **measure_disturbance(usable_processors()),
        "cost_of_keylag": instrumentation_cost(OVERHEAD_RESULT),
        "arms": {
            name: arm.model_dump(exclude_defaults=True) for name, arm in arms.items()
        },
    }


def _stack_versions(arms: Iterable[Arm]) -> dict[str, str]:
    tools = Tools.load(collector=False)
    releases = sorted({arm.release for arm in arms})
    used_services = {service.name for arm in arms for service in services_for(arm)}
    return {
        "keystone": ", ".join(keystone_version(release) for release in releases),
        "database": _version_output(tools.mariadbd),
        "memcached": _version_output(tools.memcached),
        **{
            name: _version_output(find_program(program))
            for name, program in OPTIONAL_PROGRAMS.items()
            if name in used_services
        },
        "instrumentation": "Keylag in every arm, with the same overhead in all",
    }


def keystone_addresses(plan: Plan) -> str:
    """Return the address of a switched Keystone, or that of each arm with its name."""
    if plan.is_switched:
        return plan.keystone_url(plan.base)
    return ", ".join(f"{name} {plan.keystone_url(name)}" for name in plan.arms)


def _remote_versions(plan: Plan) -> dict[str, str]:
    return {
        "keystone": keystone_addresses(plan),
        "instrumentation": "that of each Keystone; without Keylag there are no parts",
        "machine": "the facts below describe the client's machine only",
    }


def instrumentation_cost(overhead: Path) -> str:
    """Return the overhead of Keylag from a result of `make bench`, as a sentence."""
    try:
        workloads = json.loads(overhead.read_text())["workloads"]
        found = [
            f"{name} {mid:.3f} [{low:.3f}, {high:.3f}]"
            for name, arms in workloads.items()
            for low, mid, high in [arms["keylag"]["cpu_ratio"]]
            if low is not None and high is not None
        ]
    except (OSError, ValueError, KeyError, TypeError):
        found = []
    if not found:
        return "not measured on this machine; `make bench` in a checkout measures it"
    return f"CPU time relative to bare Keystone, from make bench: {', '.join(found)}"


def _version_output(program: Path) -> str:
    output = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False
    ).stdout
    return output.strip().removeprefix(str(program)).strip()


def usable_processors() -> list[int]:
    """Return the numbers of the processors that this process may use."""
    return sorted(os.sched_getaffinity(0))


def _processor_model() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()

"""Where a run was measured: what a reader has to know to judge it."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from keylag.experiment.plan import Plan
from keylag.tools import Tools
from keylag.tools.venvs import keystone_version


def record(plan: Plan) -> dict[str, Any]:
    """Return versions, the machine, its load before the start, and every arm whole."""
    tools = Tools.load()
    return {
        "keystone": keystone_version(),
        "keylag": version("keylag"),
        "python": platform.python_version(),
        "database": _said_by(tools.mariadbd),
        "memcached": _said_by(tools.memcached),
        "system": platform.platform(),
        "processor": _processor(),
        "processors": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "instrumentation": "Keylag in every arm: its cost is in all alike",
        "arms": {
            name: plan.whole_arm(name).model_dump(exclude_defaults=True)
            for name in plan.order
        },
    }


def _said_by(program: Path) -> str:
    said = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False
    ).stdout
    return said.strip().removeprefix(str(program)).strip()


def _processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()

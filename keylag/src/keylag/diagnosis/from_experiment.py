"""Facts of each arm of an experiment: what its samples.csv holds.

An arm knows its own calls, and its cache backend and workers if its Keystone was
started for the experiment; all other sources are missing.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from keylag.breakdown import quantile
from keylag.diagnosis.facts import Facts
from keylag.diagnosis.from_run import QUANTILE_NAMES, ROUTE, run_facts
from keylag.errors import WrongUsageError
from keylag.experiment.plan import Plan
from keylag.experiment.run_folder import RunFolder
from keylag.experiment.samples import Row
from keylag.phases import Cell
from keylag.run_environment import CACHE_BACKEND, PROCESSES, SERVICE_PLANS, Environment
from keylag.services.keystone import CACHE_BACKENDS

AUTH_METHODS: Final[Mapping[str, str]] = {"POST": "password"}
"""How the load plans log in."""
CACHE_VARIABLES: Final = frozenset({"OS_CACHE__BACKEND", "OS_CACHE__ENABLED"})
"""With which an arm may have another cache than its settings say."""


def read_arms(folder: Path) -> dict[str, Facts]:
    """Return the facts of an experiment's arms by name; raises WrongUsageError."""
    run = RunFolder(folder)
    plan = run.load_plan()
    if plan.load.plan in SERVICE_PLANS:
        message = (
            f"{folder} has the calls of a service; causes are those of token calls."
        )
        raise WrongUsageError(message)
    rows = run.load_rows()
    if not rows:
        message = f"{folder} has no samples: no round has ended yet."
        raise WrongUsageError(message)
    calls: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if _is_measured(row):
            calls[row.arm][row.method].append(row)
    if not calls:
        message = (
            f"{folder} has no breakdown of a call: its Keystones sent no Server-Timing"
            " of Keylag, or an older release ran it, which did not keep the cells."
        )
        raise WrongUsageError(message)
    return {
        name: run_facts(
            {
                "calls": [_call(*one) for one in calls[name].items()],
                "environment": _environment(plan, name),
            }
        )
        for name in plan.arm_names
        if name in calls
    }


def _is_measured(row: Row) -> bool:
    """Return whether a call was served, after the warm-up, with its breakdown.

    A load expects some refusals, such as of tokens that are revoked.
    """
    refused = row.code.startswith("4")
    return row.success and not (refused or row.warm_up) and bool(row.cells_text)


def _environment(plan: Plan, arm: str) -> Environment:
    """Return what is known of an arm; nothing of a Keystone that ran already."""
    if plan.remote:
        return {}
    settings = plan.resolved_arm(arm)
    known = {PROCESSES: str(settings.processes)}
    if "cache" in settings.keystone or set(settings.environment) & CACHE_VARIABLES:
        return known
    return {**known, CACHE_BACKEND: CACHE_BACKENDS[settings.cache]}


def _call(method: str, rows: Sequence[Row]) -> dict[str, object]:
    """Return calls of one kind as a breakdown has them."""
    walls = sorted(row.server_timing["total"] for row in rows)
    cells: dict[Cell, float] = defaultdict(float)
    for row in rows:
        for cell, seconds in row.cells.items():
            cells[cell] += seconds / len(rows)
    quantiles = {name: quantile(walls, share) for name, share in QUANTILE_NAMES.items()}
    return {
        "method": method,
        "route": ROUTE,
        "auth_method": AUTH_METHODS.get(method),
        "requests": len(rows),
        "wall_seconds": {"mean": fmean(walls), **quantiles},
        "sql_statements": _mean_count(rows, "sql_statements"),
        "cache_calls": _mean_count(rows, "cache_calls"),
        "cells": {".".join(cell): {"mean": mean} for cell, mean in cells.items()},
    }


def _mean_count(rows: Sequence[Row], name: str) -> dict[str, float]:
    return {"mean": fmean(row.server_timing.get(name, 0.0) for row in rows)}

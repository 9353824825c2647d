"""Facts of what `keylag load` or the demo left, or of the samples of a running load.

A run knows its own calls and Keystone's cache backend; all other sources are missing.
"""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from keylag.breakdown import compute_breakdown
from keylag.diagnosis.case import Case
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.facts import QUANTILES, SERVED, Calls, Facts, Window
from keylag.diagnosis.prometheus import Sample
from keylag.diagnosis.ranking import Diagnosis, diagnose
from keylag.errors import WrongUsageError
from keylag.jtl import JtlError, read_samples
from keylag.run_environment import CACHE_BACKEND, PROCESSES

FILE: Final = "breakdown.json"
SAMPLES: Final = "samples.jtl"
RUNNING: Final = "load without an end"
"""The name of a run that is still sending, or was killed."""
QUANTILE_NAMES: Final = {f"p{100 * share:.0f}": share for share in QUANTILES}
"""Shares of the calls by the names of quantiles in a breakdown."""
ROUTE: Final = "/v3/auth/tokens"
"""The route of token calls; the causes are those of no other route."""


def diagnose_runs(runs: Iterable[Mapping[str, Any]]) -> dict[str, Diagnosis]:
    """Return the diagnosis of each run by its name."""
    facts = {run["name"]: run_facts(run) for run in runs}
    return {
        name: diagnose(Case(one, Expected.shipped(one))) for name, one in facts.items()
    }


def read_runs(folder: Path) -> dict[str, Facts]:
    """Return the facts of a folder's runs by name; raises WrongUsageError."""
    file = folder / FILE if folder.is_dir() else folder
    if not file.exists() and (folder / SAMPLES).exists():
        return {RUNNING: _running_facts(folder / SAMPLES)}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {run["name"]: run_facts(run) for run in content["runs"]}
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        message = (
            f"{file} is no breakdown of a load: {error}. Give the folder that"
            " `keylag load` printed, such as out/load/token-mixed/latest."
        )
        raise WrongUsageError(message) from error


def _running_facts(file: Path) -> Facts:
    """Return the facts of a load that has not ended: of its samples so far."""
    try:
        samples, warnings = read_samples(file)
    except JtlError as error:
        message = f"{error} The load has just begun, or it is none of Keylag's."
        raise WrongUsageError(message) from error
    return run_facts(compute_breakdown(samples, {}, warnings))


def run_facts(run: Mapping[str, Any]) -> Facts:
    """Return the facts of one run of a breakdown."""
    seconds = _busy_seconds(run) or 1.0
    calls = [made for call in run["calls"] if (made := _calls(call, seconds))]
    environment = run["environment"]
    answers = {}
    if backend := environment.get(CACHE_BACKEND):
        answers["cache_backends"] = [Sample({"keystone_cache_backend": backend}, 1.0)]
    if workers := environment.get(PROCESSES):
        answers["workers"] = [Sample({}, float(workers))]
    return Facts(Window(0.0, seconds), calls, answers)


def _busy_seconds(run: Mapping[str, Any]) -> float:
    """Return the time of token calls in Keystone: as if one followed the other."""
    return float(
        sum(
            call["requests"] * call["wall_seconds"]["mean"]
            for call in run["calls"]
            if call["route"] == ROUTE and call["wall_seconds"]
        )
    )


def _calls(call: Mapping[str, Any], seconds: float) -> Calls | None:
    if call["route"] != ROUTE or not call["cells"]:
        return None
    cells = {}
    for name, numbers in call["cells"].items():
        phase, _, operation = name.partition(".")
        cells[phase, operation] = float(numbers["mean"])
    return Calls(
        kind=(call["method"], call["auth_method"] or ""),
        outcome=SERVED,
        per_second=call["requests"] / seconds,
        cells=cells,
        statements=_mean(call["sql_statements"]),
        round_trips=_mean(call["cache_calls"]),
        buckets=_buckets(call["wall_seconds"], call["requests"] / seconds),
    )


def _buckets(wall: Mapping[str, float], per_second: float) -> dict[float, float]:
    """Return buckets whose bounds are the known quantiles."""
    if not all(name in wall for name in QUANTILE_NAMES):
        return {}
    known = {wall[name]: share * per_second for name, share in QUANTILE_NAMES.items()}
    return {**known, math.inf: per_second}


def _mean(numbers: Mapping[str, float] | None) -> float:
    return numbers["mean"] if numbers else 0.0

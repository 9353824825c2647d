"""Analyse raw rows: ratios, counts and costs by workload and arm."""

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from keylag.paths import CHECKOUT
from keylag_bench.arms_and_workloads import ARMS, BASE, KEYLAG
from keylag_bench.export_costs import ExportCosts, export_costs
from keylag_bench.intervals import (
    Interval,
    Restarts,
    bootstrap_interval,
    complete_rounds,
    ratio_statistic,
    share_statistic,
    total_seconds,
)
from keylag_bench.raw_results import CallCounts, Row, counts_as_dict
from keylag_bench.schedule import Plan

PACKAGES = (
    "keystone",
    "sqlalchemy",
    "python-memcached",
    "pymemcache",
    "redis",
    "opentelemetry-sdk",
    "opentelemetry-instrumentation-wsgi",
    "osprofiler",
)
"""Packages whose versions the environment has."""


@dataclass(frozen=True)
class ArmSummary:
    """The results of one arm in one workload."""

    cpu_ratio: Interval
    wall_ratio: Interval
    cpu_ms: float
    """CPU milliseconds per request."""
    wall_ms: float
    """Wall milliseconds per request."""
    restarts: int
    rounds: int
    """Complete rounds of all restarts."""
    counts: Mapping[str, float] = field(default_factory=dict)
    share_of_otel: Interval | None = None
    """CPU overhead of this arm as a share of the overhead of `otel`."""
    by_keylag: Interval | None = None
    """CPU time of a variant of Keylag relative to Keylag with its defaults."""
    export_costs: ExportCosts | None = None
    """Its periodic exports; None without exports."""

    def as_json(self) -> dict[str, Any]:
        """Return the value for overhead.json."""
        ratios = {"share_of_otel": self.share_of_otel, "by_keylag": self.by_keylag}
        return {
            "cpu_ratio": self.cpu_ratio.as_list(),
            "wall_ratio": self.wall_ratio.as_list(),
            "cpu_ms": self.cpu_ms,
            "wall_ms": self.wall_ms,
            "restarts": self.restarts,
            "rounds": self.rounds,
            **self.counts,
            **{name: ratio.as_list() for name, ratio in ratios.items() if ratio},
            **({"exports": self.export_costs.as_json()} if self.export_costs else {}),
        }


Result = Mapping[str, Mapping[str, ArmSummary]]
"""Results by workload and arm; workloads without a complete round are left out."""


def analyse(
    rows: Sequence[Row], call_counts: Iterable[CallCounts], plan: Plan
) -> Result:
    """Analyse the rows of a run, which may be incomplete."""
    counts = {(one.workload, one.arm): counts_as_dict(one) for one in call_counts}
    return {
        workload.name: _analyse_one(workload.name, rows, counts, plan)
        for workload in plan.workloads
        if _requests(workload.name, rows, plan)
    }


def _analyse_one(
    workload: str,
    rows: Sequence[Row],
    counts: Mapping[tuple[str, str], Mapping[str, float]],
    plan: Plan,
) -> dict[str, ArmSummary]:
    own = [row for row in rows if row.workload == workload]
    cpu = complete_rounds(own, lambda row: row.cpu_seconds, plan.arms)
    wall = complete_rounds(own, lambda row: row.wall_seconds, plan.arms)
    seconds = {"cpu": total_seconds(cpu), "wall": total_seconds(wall)}
    milliseconds = 1e3 / _requests(workload, rows, plan)
    return {
        arm: ArmSummary(
            # The same seed for all arms, which then resample the same restarts.
            cpu_ratio=bootstrap_interval(ratio_statistic(arm), cpu, plan.seed),
            wall_ratio=bootstrap_interval(ratio_statistic(arm), wall, plan.seed),
            cpu_ms=seconds["cpu"][arm] * milliseconds,
            wall_ms=seconds["wall"][arm] * milliseconds,
            restarts=len(cpu),
            rounds=sum(map(len, cpu)),
            counts=counts.get((workload, arm), {}),
            share_of_otel=_share_of_otel(arm, cpu, plan),
            by_keylag=_by_keylag(arm, cpu, plan),
            export_costs=export_costs(arm, own, plan),
        )
        for arm in plan.arms
    }


def _share_of_otel(arm: str, restarts: Restarts, plan: Plan) -> Interval | None:
    if arm != KEYLAG or "otel" not in plan.arms:
        return None
    return bootstrap_interval(share_statistic(arm, "otel"), restarts, plan.seed)


def _by_keylag(arm: str, restarts: Restarts, plan: Plan) -> Interval | None:
    is_variant = arm != KEYLAG and ARMS[arm].instrumentation == KEYLAG
    if not is_variant or KEYLAG not in plan.arms:
        return None
    return bootstrap_interval(ratio_statistic(arm, KEYLAG), restarts, plan.seed)


def _requests(workload: str, rows: Iterable[Row], plan: Plan) -> int:
    # Requests of each arm in complete rounds.
    own = [row for row in rows if row.workload == workload]
    rounds = complete_rounds(own, lambda row: float(row.requests), plan.arms)
    return int(total_seconds(rounds).get(BASE, 0))


def describe_environment() -> dict[str, str]:
    """Return versions, hardware and load of the machine, for overhead.json."""
    lock = (CHECKOUT / "locks" / "bench.txt").read_text(encoding="utf-8")
    versions = dict(re.findall(r"^([\w-]+)==(\S+)", lock, re.MULTILINE))
    return {
        "keylag": _digest(CHECKOUT / "collectors"),
        **{name: versions[name] for name in PACKAGES},
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpus": str(os.cpu_count()),
        "load_before": f"{os.getloadavg()[0]:.2f}",
    }


def _digest(collectors: Path) -> str:
    # Identifies the state of the collectors.
    digest = sha256()
    for pattern in ("native/*", "src/**/*.py"):
        for file in sorted(collectors.glob(pattern)):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def write_json(
    path: Path, result: Result, plan: Plan, facts: Mapping[str, Any]
) -> None:
    """Write overhead.json; `facts` are more keys beside the workloads."""
    text = {
        "workloads": {
            name: {arm: measured.as_json() for arm, measured in arms.items()}
            for name, arms in result.items()
        },
        "seed": plan.seed,
        "restarts": plan.restarts,
        "rounds": plan.rounds,
        "requests": {workload.name: workload.requests for workload in plan.workloads},
        **facts,
    }
    path.write_text(json.dumps(text, indent=2) + "\n", encoding="utf-8")

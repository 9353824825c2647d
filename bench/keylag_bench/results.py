"""The result, made of the raw rows alone: ratios, counts and verdicts."""

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from keylag.state import CHECKOUT
from keylag_bench.exports import Exported, exported
from keylag_bench.intervals import (
    Interval,
    Restarts,
    blocks_of,
    interval,
    ratio_of,
    share_of,
    total,
)
from keylag_bench.rows import Counted, Row, counts_of
from keylag_bench.schedule import Plan
from keylag_bench.tables import ARMS, BASE, KEYLAG

NAMED = (
    "keystone",
    "sqlalchemy",
    "python-memcached",
    "pymemcache",
    "redis",
    "opentelemetry-sdk",
    "opentelemetry-instrumentation-wsgi",
    "osprofiler",
)
"""Packages whose versions go into the environment."""


@dataclass(frozen=True)
class Measured:
    """One arm on one workload."""

    cpu_ratio: Interval
    wall_ratio: Interval
    cpu_ms: float
    """Of one request."""
    wall_ms: float
    restarts: int
    blocks: int
    """How many blocks, of all restarts, the figures are made of."""
    counts: Mapping[str, float] = field(default_factory=dict)
    share_of_otel: Interval | None = None
    """What it adds to the CPU by what `otel` adds."""
    by_keylag: Interval | None = None
    """The CPU of one of Keylag's arms by that of Keylag as it is by default."""
    exported: Exported | None = None
    """Its periodic exports; None if it made none."""

    def as_json(self) -> dict[str, Any]:
        """Return it as overhead.json has it."""
        ratios = {"share_of_otel": self.share_of_otel, "by_keylag": self.by_keylag}
        return {
            "cpu_ratio": self.cpu_ratio.as_list(),
            "wall_ratio": self.wall_ratio.as_list(),
            "cpu_ms": self.cpu_ms,
            "wall_ms": self.wall_ms,
            "restarts": self.restarts,
            "blocks": self.blocks,
            **self.counts,
            **{name: ratio.as_list() for name, ratio in ratios.items() if ratio},
            **({"exports": self.exported.as_json()} if self.exported else {}),
        }


Result = Mapping[str, Mapping[str, Measured]]
"""Workload to arm to figures; what has no whole block is left out."""


def analyse(rows: Sequence[Row], counted: Iterable[Counted], plan: Plan) -> Result:
    """Return the result of what there is."""
    counts = {(one.workload, one.arm): counts_of(one) for one in counted}
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
) -> dict[str, Measured]:
    own = [row for row in rows if row.workload == workload]
    cpu = blocks_of(own, lambda row: row.cpu_seconds, plan.arms)
    wall = blocks_of(own, lambda row: row.wall_seconds, plan.arms)
    totals = {"cpu": total(cpu), "wall": total(wall)}
    milliseconds = 1e3 / _requests(workload, rows, plan)
    return {
        arm: Measured(
            # One seed for all, so that the same restarts are drawn.
            cpu_ratio=interval(ratio_of(arm), cpu, plan.seed),
            wall_ratio=interval(ratio_of(arm), wall, plan.seed),
            cpu_ms=totals["cpu"][arm] * milliseconds,
            wall_ms=totals["wall"][arm] * milliseconds,
            restarts=len(cpu),
            blocks=sum(map(len, cpu)),
            counts=counts.get((workload, arm), {}),
            share_of_otel=_share(arm, cpu, plan),
            by_keylag=_by_keylag(arm, cpu, plan),
            exported=exported(arm, own, plan),
        )
        for arm in plan.arms
    }


def _share(arm: str, restarts: Restarts, plan: Plan) -> Interval | None:
    if arm != KEYLAG or "otel" not in plan.arms:
        return None
    return interval(share_of(arm, "otel"), restarts, plan.seed)


def _by_keylag(arm: str, restarts: Restarts, plan: Plan) -> Interval | None:
    is_variant = arm != KEYLAG and ARMS[arm].instrumentation == KEYLAG
    if not is_variant or KEYLAG not in plan.arms:
        return None
    return interval(ratio_of(arm, KEYLAG), restarts, plan.seed)


def _requests(workload: str, rows: Iterable[Row], plan: Plan) -> int:
    """Return how many requests each arm made in whole blocks."""
    own = [row for row in rows if row.workload == workload]
    blocks = blocks_of(own, lambda row: float(row.requests), plan.arms)
    return int(total(blocks).get(BASE, 0))


def environment() -> dict[str, str]:
    """Return what a reader has to know to judge the figures."""
    lock = (CHECKOUT / "locks" / "bench.txt").read_text(encoding="utf-8")
    versions = dict(re.findall(r"^([\w-]+)==(\S+)", lock, re.MULTILINE))
    return {
        "keylag": _digest(CHECKOUT / "collectors"),
        **{name: versions[name] for name in NAMED},
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpus": str(os.cpu_count()),
        "load_before": f"{os.getloadavg()[0]:.2f}",
    }


def _digest(collectors: Path) -> str:
    """Return what tells one state of the collectors from another."""
    digest = sha256()
    for pattern in ("native/*", "src/**/*.py"):
        for file in sorted(collectors.glob(pattern)):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def save(path: Path, result: Result, plan: Plan, facts: Mapping[str, Any]) -> None:
    """Write overhead.json; `facts` stand beside the workloads."""
    text = {
        "workloads": {
            name: {arm: measured.as_json() for arm, measured in arms.items()}
            for name, arms in result.items()
        },
        "seed": plan.seed,
        "restarts": plan.restarts,
        "blocks": plan.blocks,
        "requests": {workload.name: workload.requests for workload in plan.workloads},
        **facts,
    }
    path.write_text(json.dumps(text, indent=2) + "\n", encoding="utf-8")

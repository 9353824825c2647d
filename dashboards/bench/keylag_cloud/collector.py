"""A real Collector that gets the exports of many workers."""

import json
import math
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil

from keylag.paths import DEPLOY
from keylag.ports import allocate_ports
from keylag.services.base import HOST
from keylag.tools import Tools
from keylag_cloud.exposition import Labels, Sample
from keylag_cloud.prometheus import wait_for
from keylag_dashboards.metrics import (
    UNIT_SUFFIXES,
    instruments_by_kind,
    prometheus_name,
)

CONFIG: Final = DEPLOY / "otel-collector" / "config.yaml"
ROUNDS: Final = 3
"""Exports of each worker, the first of which creates its series."""
TIMEOUT_SECONDS: Final = 120
_VARIABLES: Final = {
    "KEYLAG_OTELCOL_HEALTH_LISTEN": "health",
    "KEYLAG_OTELCOL_OTLP_LISTEN": "otlp",
    "KEYLAG_OTELCOL_METRICS_LISTEN": "metrics",
}


@dataclass(frozen=True)
class CollectorCost:
    """What a Collector needed for a number of workers."""

    workers: int
    series: int
    resident_bytes: int
    """The most, with scrapes and exports."""
    export_cpu_seconds: float
    """CPU time of one export of one worker, as JSON; workers send protobuf."""
    scrape_cpu_seconds: float
    """CPU time of one scrape of all."""
    page_bytes: int
    refused: int
    """Exports that its memory limiter refused."""


def _declared_names() -> dict[str, str]:
    """Return names in OpenTelemetry by those in Prometheus, of metrics and labels."""
    names = {}
    for instrument, kind in instruments_by_kind():
        prometheus_names = prometheus_name(instrument, kind).removesuffix("_total")
        names[prometheus_names] = instrument.name
        names |= {one.replace(".", "_"): one for one in instrument.attributes}
    return names


_NAMES: Final = _declared_names()


_KINDS: Final[Mapping[str, dict[str, Any]]] = {
    "gauge": {},
    "sum": {"aggregationTemporality": 2, "isMonotonic": True},
    "histogram": {"aggregationTemporality": 2},
}


def _unit(name: str) -> str:
    """Return the unit that a metric's name in Prometheus ends in."""
    units = (unit for unit, suffix in UNIT_SUFFIXES.items() if name.endswith(suffix))
    return next(units, "")


def otlp_request(samples: Sequence[Sample], number: int) -> dict[str, Any]:
    """Return an export of one worker."""
    now = str(time.time_ns())
    points = defaultdict[tuple[str, str], list[dict[str, Any]]](list)
    histograms = defaultdict[tuple[str, Labels], dict[str, float]](dict)
    for one in samples:
        name, kind = one.name.rpartition("_")[::2]
        if one.counts and kind != "total":
            rest = tuple(pair for pair in one.labels if pair[0] != "le")
            part = dict(one.labels).get("le", kind)
            histograms[name, rest][part] = one.value
        else:
            point = _point(one.labels, now) | {"asDouble": one.value}
            found = (name, "sum") if one.counts else (one.name, "gauge")
            points[found].append(point)
    for (name, labels), parts in histograms.items():
        points[name, "histogram"].append(_point(labels, now) | _histogram(parts))
    metrics = [
        {
            "name": _NAMES[name],
            "unit": _unit(name),
            kind: _KINDS[kind] | {"dataPoints": of},
        }
        for (name, kind), of in points.items()
    ]
    identity = {
        "service.name": "keystone",
        "service.instance.id": f"{HOST}/{number}",
        "host.name": HOST,
    }
    resource = {"attributes": _attributes(tuple(identity.items()))}
    scopes = [{"scope": {"name": "keylag_otel"}, "metrics": metrics}]
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": scopes}]}


def _histogram(parts: dict[str, float]) -> dict[str, Any]:
    bounds = sorted(float(one) for one in parts if one not in {"sum", "count"})
    by_bound = {float(k): v for k, v in parts.items() if k not in {"sum", "count"}}
    counts = [by_bound[bound] for bound in bounds]
    own = [round(b - a) for a, b in zip([0.0, *counts], counts, strict=False)]
    return {
        "count": str(round(parts["count"])),
        "sum": parts["sum"],
        "explicitBounds": [bound for bound in bounds if not math.isinf(bound)],
        "bucketCounts": [str(one) for one in own],
    }


def _point(labels: Labels, now: str) -> dict[str, Any]:
    kept = tuple(one for one in labels if not one[0].startswith(("otel_", "telemetry")))
    return {
        "attributes": _attributes(kept),
        "startTimeUnixNano": "1",
        "timeUnixNano": now,
    }


def _attributes(labels: Labels) -> list[dict[str, Any]]:
    return [
        {"key": _NAMES.get(name, name), "value": {"stringValue": value}}
        for name, value in labels
    ]


@contextmanager
def _running(
    folder: Path, memory_mib: int, more: Sequence[Path]
) -> Iterator[tuple[dict[str, int], psutil.Process]]:
    """Start the Collector with a limit of its memory, and more configuration."""
    ports = allocate_ports([*_VARIABLES.values(), "self"], {})
    config = folder / "collector.yaml"
    text = CONFIG.read_text(encoding="utf-8")
    config.write_text(text.replace("limit_mib: 256", f"limit_mib: {memory_mib}"))
    environment = {name: f"{HOST}:{ports[port]}" for name, port in _VARIABLES.items()}
    environment["KEYLAG_OTELCOL_SELF_PORT"] = str(ports["self"])
    files = (config, *(one.resolve() for one in more))
    command = [str(Tools.load().otelcol), *(f"--config={one}" for one in files)]
    log = folder / "collector.log"
    with (
        log.open("wb") as to_log,
        subprocess.Popen(
            command, env=environment, stdout=to_log, stderr=to_log
        ) as process,
    ):
        try:
            wait_for(f"http://{HOST}:{ports['health']}/", process, log)
            yield ports, psutil.Process(process.pid)
        finally:
            process.terminate()


def measure(
    samples: Sequence[Sample],
    workers: int,
    folder: Path,
    memory_mib: int,
    more: Sequence[Path] = (),
) -> CollectorCost:
    """Send the exports of some workers, scrape, and return what that needed."""
    refused, exporting, scraping, resident, page = 0, 0.0, 0.0, 0, b""
    with _running(folder, memory_mib, more) as (ports, process):
        for _ in range(ROUNDS):
            before = _cpu(process)
            for number in range(1, workers + 1):
                body = json.dumps(otlp_request(samples, number)).encode()
                refused += _send(ports["otlp"], body)
            between = _cpu(process)
            with urlopen(
                f"http://{HOST}:{ports['metrics']}/metrics", timeout=TIMEOUT_SECONDS
            ) as response:
                page = response.read()
            exporting, scraping = between - before, _cpu(process) - between
            resident = max(resident, process.memory_info().rss)
    return CollectorCost(
        workers=workers,
        series=sum(not line.startswith(b"#") for line in page.splitlines()),
        resident_bytes=resident,
        export_cpu_seconds=exporting / workers,
        scrape_cpu_seconds=scraping,
        page_bytes=len(page),
        refused=refused,
    )


def _send(port: int, body: bytes) -> bool:
    """Send an export; return whether it was refused."""
    request = Request(
        f"http://{HOST}:{port}/v1/metrics",
        body,
        {"Content-Type": "application/json"},
    )
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
            response.read()
    except HTTPError:
        return True
    return False


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)

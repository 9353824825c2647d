"""Breaks down the requests to a site's Keystone in a period, by its Prometheus."""

import json
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.diagnosis.prometheus import Sample, read_values
from keylag.lab.galera.site import site_folder
from keylag.lab.iproute import LabError, command_in, run
from keylag.lab.network import Host
from keylag.phases import category_of
from keylag.stack_info import StackInfo
from keylag.tools.programs import find_program

DELAY_SECONDS: Final = 2.0
"""Until Prometheus has the end of a request: workers export, and it scrapes, each
second."""
SHORTEST_SECONDS: Final = 10.0
"""Of a period, whose ends are uncertain by a second each."""
TIME: Final = "keystone_request_phase_time_seconds_total"
COUNT: Final = "http_server_request_duration_seconds_count"
REQUEST: Final = ("http_request_method", "http_route")
CELL: Final = ("keystone_phase", "keystone_operation")
PROGRAM: Final = "promtool"


@dataclass(frozen=True)
class SiteBreakdown:
    """The requests of a period."""

    counts: Mapping[str, float]
    """By method and route, such as `POST /v3/users`."""
    seconds: Mapping[str, float]
    """Self time of all of them, by category; its sum is their wall time."""


def query_site(lab: Path, router: Host, promql: str, at: float) -> tuple[Sample, ...]:
    """Return what the Prometheus of a site answers, at a Unix time.

    Raises LabError, or ToolError without promtool.
    """
    url = StackInfo(site_folder(lab, router.name)).url("prometheus")
    command = [str(find_program(PROGRAM)), "query", "instant", "--format=json"]
    told = run(
        *command_in(router.namespace, [*command, f"--time={at:.3f}", url, promql])
    )
    return read_values(json.loads(told))


def break_down(
    lab: Path, router: Host, begun: float, ended: float, without: str
) -> SiteBreakdown:
    """Return the requests that ended between two Unix times.

    `without` is a method whose requests do not count.  Both ends are uncertain by a
    second.  Raises LabError, as for too short a period, or ToolError without promtool.
    """
    if ended - begun < SHORTEST_SECONDS:
        message = (
            f"{ended - begun:.1f} s are too short to break down. Send requests for "
            f"{SHORTEST_SECONDS:g} s or more."
        )
        raise LabError(message)
    time.sleep(max(ended + DELAY_SECONDS - time.time(), 0.0))

    def ask(metric: str, *labels: str) -> tuple[Sample, ...]:
        increase = _increase(metric, labels, without, ended - begun)
        return query_site(lab, router, increase, ended + DELAY_SECONDS)

    seconds = defaultdict[str, float](float)
    phase, operation = CELL
    for one in ask(TIME, *CELL):
        category = category_of((one.labels[phase], one.labels[operation]))
        seconds[category] += one.value
    counts = {
        " ".join(one.labels.get(name, "") for name in REQUEST): one.value
        for one in ask(COUNT, *REQUEST)
    }
    return SiteBreakdown(counts, dict(seconds))


def _increase(
    metric: str, labels: tuple[str, ...], without: str, seconds: float
) -> str:
    # Of each worker alone: one that began again in the period counts what it has now,
    # and one that began in it had nothing before, which PromQL's increase() loses.
    now = f'{metric}{{http_request_method!="{without}"}}'
    before = f"({now} offset {seconds * 1000:.0f}ms or 0 * {now})"
    return f"sum by ({', '.join(labels)}) ({now} - {before} >= 0 or {now})"

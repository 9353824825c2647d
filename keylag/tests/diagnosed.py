"""Facts for tests of the diagnosis: a healthy Keystone, and changes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from keylag.diagnosis.case import Case
from keylag.diagnosis.expected import Expected, load_shipped
from keylag.diagnosis.facts import SERVED, Calls, Facts, Kind, Window
from keylag.diagnosis.measurements import MEASUREMENTS
from keylag.diagnosis.prometheus import Sample
from keylag.diagnosis.ranking import Diagnosis, diagnose
from keylag.phases import Cell

WINDOW = Window(1000.0, 1900.0)
LOGIN: Kind = ("POST", "password")
VALIDATION: Kind = ("GET", "")
RATES = {LOGIN: 0.5, VALIDATION: 10.0}
"""Calls per second of a healthy Keystone."""
HEALTHY: Mapping[str, Sequence[Sample]] = {
    "other_seconds": [Sample({}, 0.05)],
    "requests": [Sample({}, 12.0)],
    "workers": [Sample({}, 4.0)],
    "cpu_wait_seconds": [Sample({}, 0.01)],
    "cpu_seconds": [Sample({}, 0.4)],
    "cache_backends": [
        Sample({"keystone_cache_backend": "oslo_cache.memcache_pool"}, 4.0)
    ],
    "memcached_up": [Sample({}, 1.0)],
    "memcached_connections": [Sample({}, 0.02)],
    "memcached_uptime": [Sample({}, 90000.0)],
    "hashes": [
        Sample(
            {
                "keystone_password_hash_algorithm": "bcrypt",
                "keystone_password_hash_cost": "12",
            },
            0.5,
        )
    ],
    "index_present": [Sample({"columns": "issued_before"}, 1.0)],
    "queue": [Sample({}, 0.0)],
    "host_cpu_seconds": [Sample({"mode": "idle"}, 3.0), Sample({"mode": "user"}, 1.0)],
    "host_cpus": [Sample({}, 4.0)],
}
"""Measurements of a healthy Keystone; all others have no values."""


def healthy_calls(
    kind: Kind, more: Mapping[Cell, float] | None = None, **changes: Any
) -> Calls:
    """Return the calls of a kind, with more time in some cells."""
    figures = load_shipped()[kind]
    cells = dict(figures.cells)
    for cell, seconds in (more or {}).items():
        cells[cell] = cells.get(cell, 0.0) + seconds
    made = Calls(
        kind=kind,
        outcome=SERVED,
        per_second=RATES[kind],
        cells=cells,
        statements=figures.statements,
        round_trips=figures.round_trips,
    )
    return replace(made, **changes)


def make_facts(
    *calls: Calls, without: Sequence[str] = (), **answers: Sequence[Sample] | float
) -> Facts:
    """Return facts: healthy ones, with other calls and other answers.

    `without` are sources that send nothing.
    """
    chosen = {one.kind: one for one in map(healthy_calls, RATES)}
    others = [one for one in calls if one.outcome != SERVED]
    chosen |= {one.kind: one for one in calls if one.outcome == SERVED}
    known: dict[str, Sequence[Sample]] = {
        name: HEALTHY.get(name, ())
        for name, one in MEASUREMENTS.items()
        if one.source not in {"proxysql", "services", *without}
    }
    for name, value in answers.items():
        known[name] = [Sample({}, value)] if isinstance(value, int | float) else value
    return Facts(WINDOW, [*chosen.values(), *others], known)


def judge(facts: Facts, baseline: Facts | None = None) -> Diagnosis:
    """Return the diagnosis of facts."""
    expected = Expected.of(baseline) if baseline else Expected.shipped(facts)
    return diagnose(Case(facts, expected))


def found(facts: Facts, baseline: Facts | None = None) -> list[str]:
    """Return the ids of the findings, the first one first."""
    return [one.rule.id for one in judge(facts, baseline).findings]


def histogram(**counts: float) -> list[Sample]:
    """Return cumulative buckets: `le_0_001=5` is five calls below a millisecond."""
    return [
        Sample({"le": name.removeprefix("le_").replace("_", ".")}, count)
        for name, count in counts.items()
    ]

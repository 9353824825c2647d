"""Faults in a real stack: each slows token calls, and leaves no trace."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from keylag.control_groups import CGROUPS
from keylag.demo import SAMPLE_CLOUD
from keylag.faults.drill import measure
from keylag.faults.impact import Impact
from keylag.faults.journal import FILE
from keylag.faults.model import DELETE, SERVICE, Fault
from keylag.faults.planting import LOCK, planted
from keylag.faults.probe import Measurement, Probe
from keylag.faults.registry import FAULTS
from keylag.faults.site import Site
from keylag.services import is_installed, select_services
from keylag.services.base import StackOptions
from keylag.stack import Stack
from keylag.tools import Tools

pytestmark = pytest.mark.stack

ALWAYS = ("C2", "N1")
"""Faults of `make test`; `make test-matrix` has them all."""
STRENGTHS = {"D3": 1_000_000, "N1": 200}
"""Of faults whose usual cost disappears in the noise of a machine under test."""
LIMITED = ("D2:disk", "W2:limit")
"""Faults that need control groups."""
UNOBSERVED = {
    *("otel-collector", "prometheus", "exporters", "diagnosis"),
    *("grafana", "tempo", "jaeger"),
}
KEPT = ("mariadb", "redis")
"""Services that no fault of the catalogue restarts."""
COUNTED = ("endpoint", "service", "password", "assignment", "revocation_event")


@dataclass(frozen=True)
class Trace:
    """What a fault must not change for good."""

    tables: Mapping[str, str]
    rows: Mapping[str, int]
    options: StackOptions
    pids: Mapping[str, int | None]
    files: frozenset[str]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of its own, because faults restart its servers."""
    proxysql = ("proxysql",) if is_installed("proxysql") else ()
    extras = (*proxysql, "service")
    options = StackOptions(cache="memcache_pool", extras=extras)
    services = [one for one in select_services(extras) if one.name not in UNOBSERVED]
    folder: Path = tmp_path_factory.mktemp("faults")
    with Stack(
        folder, Tools.load(), options, initial_data=SAMPLE_CLOUD, services=services
    ) as started:
        yield started


def trace(stack: Stack, counted: Collection[str] = COUNTED) -> Trace:
    """Return what is in the stack now."""
    site = Site(stack.folder, Console(quiet=True), stack)
    names = [name for (name,) in site.query("SHOW TABLES")]
    pids = {one.service: one.pid for one in stack.status()}
    return Trace(
        tables={name: _definition(site, name) for name in names},
        rows={name: _count(site, name) for name in counted},
        options=stack.options,
        pids={name: pids[name] for name in KEPT},
        files=frozenset(file.name for file in stack.folder.iterdir()) - {LOCK},
    )


def _count(site: Site, table: str) -> int:
    ((number,),) = site.query(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - own names
    return int(number)


def _definition(site: Site, table: str) -> str:
    ((_, text, *_),) = site.query(f"SHOW CREATE TABLE `{table}`")
    # The next number grows as Keystone writes rows.
    first, _, last = str(text).rpartition(" AUTO_INCREMENT=")
    return first + last.lstrip("0123456789") if first else last


def parameters() -> list[Any]:
    """Return all keys; most only for the matrix."""
    return [
        key if key in ALWAYS else pytest.param(key, marks=pytest.mark.matrix)
        for key in FAULTS
    ]


@contextmanager
def prepared(stack: Stack, fault: Fault) -> Iterator[None]:
    """Give the stack what a fault needs while the body runs; skips without a server."""
    usual = stack.options
    options = reduce(lambda one, need: need.added_to(one), fault.needs, usual)
    if options.extras != usual.extras:
        pytest.skip(fault.needs[0].advice)
    if options != usual:
        stack.restart("keystone", options=options)
    with ExitStack() as others:
        for key, strength in fault.beside.items():
            others.enter_context(planted(stack, FAULTS[key], strength))
        yield
    if options != usual:
        stack.restart("keystone", options=usual)


@pytest.mark.parametrize("key", parameters())
def test_a_fault_slows_calls_and_leaves_no_trace(stack: Stack, key: str) -> None:
    if key in LIMITED and not os.access(CGROUPS, os.W_OK):
        pytest.skip(f"{CGROUPS} cannot be written: it needs root")
    with prepared(stack, FAULTS[key]):
        check_impact(stack, FAULTS[key])


def check_impact(stack: Stack, fault: Fault) -> None:
    """Check that a fault slows calls, and that nothing of it stays."""
    probe = Probe(stack)
    # A log-out writes a revocation event, with a fault and without.
    counted = {*COUNTED} - ({"revocation_event"} if DELETE in fault.slows else set())
    before, found = measure(probe, fault), trace(stack, counted)

    with planted(stack, fault, STRENGTHS.get(fault.key)):
        after = measure(probe, fault)

    again = measure(probe, fault)
    slower = Impact(before, after).slower
    assert set(slower) & {*fault.slows}, report(before, after)
    assert found == trace(stack, counted)
    assert stack.is_up()
    assert (stack.folder / FILE).exists() == bool(fault.beside)
    assert all(one.errors == 0 for one in again.values()), report(after, again)
    recovered = [kind for kind in slower if _is_faster(after, again, kind)]
    assert recovered, report(after, again)
    assert (SERVICE in before) == (SERVICE in fault.slows)


def _is_faster(during: Measurement, again: Measurement, kind: str) -> bool:
    return again[kind].p50 < during[kind].p50 or again[kind].p95 < during[kind].p95


def report(first: Measurement, second: Measurement) -> str:
    """Return two measurements as a text."""
    return "\n".join(f"{kind}: {first[kind]} -> {second[kind]}" for kind in first)

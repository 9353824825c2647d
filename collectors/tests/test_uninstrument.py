"""`uninstrument` of both instrumentors restores every attribute."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest
from auth_token_service import authtoken
from host_attributes import changed, is_ours, objects_left, ours, snapshot
from keystone_client import Keystone, environ_of, password
from keystone_site import Site
from test_cardinality import send

from keylag_otel.auth_token.recording import SERVICE_AGGREGATOR
from keylag_otel.counters import counter_attributes
from keylag_otel.request_aggregator import AGGREGATOR

NAMES = ("KeystoneInstrumentor", "AuthTokenInstrumentor")
#: The orders of instrumenting and of uninstrumenting.
ORDERS = {
    "as they came": (NAMES, NAMES),
    "the other way round": (NAMES, NAMES[::-1]),
    "Keystone alone": (NAMES[:1], NAMES[:1]),
    "auth_token alone": (NAMES[1:], NAMES[1:]),
}
#: Names by which Keystone has imported seams of another module: what they name is
#: not put back, and does nothing outside of a request that is measured.
COPIES = frozenset(
    f" keystone.common.utils.{name}" for name in ("hash_password", "check_password")
)
NOTHING: dict[str, Any] = {"attributes": [], "objects": [], "gc": [], "filters": []}


def instrumentors(names: tuple[str, ...]) -> list[Any]:
    import keylag_otel

    return [getattr(keylag_otel, name)() for name in names]


def left() -> dict[str, Any]:
    """Return Keylag's objects outside of its own modules."""
    return {
        "attributes": sorted({*ours()} - COPIES),
        "objects": objects_left(),
        "gc": [str(call) for call in gc.callbacks if "keylag" in call.__module__],
        "filters": [
            name
            for name in logging.root.manager.loggerDict
            for each in getattr(logging.getLogger(name), "filters", ())
            if is_ours(each)
        ],
    }


def import_hosts() -> None:
    """Import the modules of all seams, without instrumenting them."""
    from keylag_otel.__main__ import HOSTS

    sys.argv = sys.argv[:1]
    for seam in (seam for seams in HOSTS.values() for seam in seams):
        with suppress(ImportError):
            import_module(seam.module)


def compare() -> dict[str, dict[str, Any]]:
    """Instrument and uninstrument in each order, twice over; compare attributes."""
    import_hosts()
    before = snapshot()
    return {name: compare_once(before, *order) for name, order in ORDERS.items()}


def compare_once(
    before: dict[Any, Any], first: tuple[str, ...], second: tuple[str, ...]
) -> dict[str, Any]:
    instrumented = []
    for _ in range(2):
        for each in instrumentors(first):
            each.instrument()
            each.instrument()
        instrumented.append(sorted(changed(before)))
        for each in instrumentors(second):
            each.uninstrument()
            each.uninstrument()
    return {"instrumented": instrumented, "changed": changed(before), "left": left()}


@pytest.fixture(scope="module")
def compared() -> dict[str, dict[str, Any]]:
    """The result in a process that imports all hosts before Keylag."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(compare).result(120)


@pytest.mark.parametrize("order", ORDERS)
def test_uninstrument_restores_every_attribute(compared, order) -> None:
    assert compared[order]["changed"] == []
    assert compared[order]["left"] == NOTHING


@pytest.mark.parametrize("order", ORDERS)
def test_instrumenting_again_binds_again(compared, order) -> None:
    once, twice = compared[order]["instrumented"]

    assert once == twice
    assert len(once) >= {"Keystone alone": 60, "auth_token alone": 10}.get(order, 70)


def use(keystone: Keystone) -> dict[str, Any]:
    """Serve instrumented from before the import, then uninstrumented, then again."""
    from keystonemiddleware.auth_token import AuthProtocol

    del AGGREGATOR.add
    instrumentors(NAMES)[1].instrument()
    service = AuthProtocol(None, authtoken("http://127.0.0.1:9/v3"))
    ask(keystone.application, service)  # fills the caches
    seen = {"instrumented": ask(keystone.application, service), "ours": sorted(ours())}
    for each in instrumentors(NAMES):
        each.uninstrument()
    seen["left"] = left()
    seen["uninstrumented"] = ask(keystone.application, service)
    for each in instrumentors(NAMES):
        each.instrument()
    seen["ours again"] = sorted(ours())
    seen["instrumented again"] = ask(keystone.application, service)
    return seen


def ask(application: Any, service: Any) -> dict[str, Any]:
    """Log in, and call a service without a token; return the counters."""
    AGGREGATOR.reset()
    SERVICE_AGGREGATOR.reset()
    body = {"auth": password("admin")}
    issued = send(application, environ_of("POST", "/v3/auth/tokens", body, {}))
    refused = send(service, environ_of("GET", "/", None, {}))
    return {
        "answers": [issued, refused],
        "rows": [len(AGGREGATOR.aggregates()), len(SERVICE_AGGREGATOR.aggregates())],
        "phases": sorted(
            {found["keystone.phase"] for _, found in AGGREGATOR.phase_seconds()}
        ),
        "counted": sorted({counter_attributes(n)[0] for n in AGGREGATOR.counters}),
    }


@pytest.fixture(scope="module")
def used(processes, prepared, tmp_path_factory) -> dict[str, Any]:
    return Site(processes, prepared, tmp_path_factory.mktemp("uninstrument")).run(use)


def test_uninstrumented_keystone_records_nothing(used) -> None:
    assert used["left"] == NOTHING
    assert used["uninstrumented"] == {
        "answers": [201, 401],
        "rows": [0, 0],
        "phases": [],
        "counted": [],
    }


def test_keystone_is_instrumented_again(used) -> None:
    assert used["instrumented"]["rows"] == [1, 1]
    assert used["instrumented again"] == used["instrumented"]
    assert used["ours again"] == used["ours"]

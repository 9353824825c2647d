"""A million wrapped calls leak no memory."""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from keystone_client import Keystone, environ_of
from keystone_site import Site
from test_cardinality import send

#: The same with each release of Keystone.
pytestmark = pytest.mark.newest

CALLS = 1_000_000
CALLS_OF_A_REQUEST = 100
#: An allocator's own noise; four bytes for each call.
ROOM = 4 * 2**20

#: Paths for which Keystone keeps no state between requests.
UNCACHED = {"cache": {"backend": "dogpile.cache.null"}, "DEFAULT": {"log_file": ""}}
REQUESTS = 2_000


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def wrapped_call(leak: list[Any] | None) -> Callable[[dict[str, str]], str]:
    """Return a function with all kinds of wrappers, which may leak."""
    from keylag_otel.counters import counter_id
    from keylag_otel.wrappers import after_call, before_call, on_exception, timed

    def hook(timer: Any, args: Any, kwargs: Any) -> None:
        timer.increment(counter_id("sql_errors", "project", "deadlock"))
        if leak is not None:
            leak.append(bytearray(64))

    def after(timer: Any, args: Any, result: Any) -> None:
        timer.count(0)

    call: Any = dict.__len__
    for maker in (timed("sql", "validate"), before_call(hook), after_call(after)):
        call = maker(call)
    return on_exception(after)(call)


def work(application: Any, calls: int) -> None:
    """Serve requests that make as many calls, each with its own path."""
    for number in range(calls // CALLS_OF_A_REQUEST):
        environ = {"REQUEST_METHOD": f"M{number}", "PATH_INFO": f"/{number}"}
        send(application, environ)


def measure(leak: str) -> None:
    """Print the growth in bytes from a warm-up to the end of all calls."""
    os.environ["OTEL_METRICS_EXPORTER"] = "none"
    from keylag_otel.request import TimedApplication

    call = wrapped_call([] if leak else None)

    def application(environ: dict[str, str], start_response: Any) -> list[bytes]:
        for _ in range(CALLS_OF_A_REQUEST):
            call(environ)
        start_response("200 OK", [])
        return [b"ok"]

    measured = TimedApplication(application)
    work(measured, CALLS // 10)
    before = resident()
    work(measured, CALLS)
    print(json.dumps(resident() - before))  # noqa: T201 - read by the test


def growth_of(hot_path: str, leak: str = "") -> int:
    """Return what `measure` prints in a process of its own."""
    code = f"import test_memory; test_memory.measure({leak!r})"
    here = os.environ.get("PYTHONPATH", "")
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "KEYLAG_PURE_PYTHON": str(hot_path == "python"),
            "PYTHONPATH": f"{Path(__file__).parent}:{here}",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    grown: int = json.loads(run.stdout.splitlines()[-1])
    return grown


@pytest.mark.parametrize("hot_path", ["c", "python"])
def test_a_million_wrapped_calls_leak_no_memory(hot_path) -> None:
    assert growth_of(hot_path) < ROOM


def test_a_small_leak_per_call_is_detected() -> None:
    assert growth_of("c", "a leak") > 10 * ROOM


def serve(keystone: Keystone) -> list[int]:
    """Serve hundreds of rejected requests, then thousands; return the memory."""
    from keylag_otel.request_aggregator import AGGREGATOR

    del AGGREGATOR.add
    sizes = []
    for number in (REQUESTS // 4, REQUESTS):
        for i in range(number):
            headers = {"X-Auth-Token": f"token-{number}-{i}"}
            environ = environ_of("GET", f"/v3/users/{number}-{i}", None, headers)
            assert send(keystone.application, environ) == 401
        sizes.append(resident())
    return sizes


def test_refused_requests_leak_no_memory(processes, prepared, tmp_path) -> None:
    site = Site(processes, prepared, tmp_path)

    before, after = site.run(serve, options=UNCACHED)

    assert after - before < ROOM

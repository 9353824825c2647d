"""The cells of a request add up to its wall time, however it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from keystone_client import Breakdown, Keystone, environ_of, least_disturbed, password
from keystone_site import Site

#: The expectations are those of Keystone 30.
pytestmark = pytest.mark.newest

SLEEP_SECONDS = 0.1
HALF_OF_IT = SLEEP_SECONDS / 2
"""A sleep that is counted twice, not at all or elsewhere differs by more than this."""
Seen = dict[str, Any]

#: Way to end to its status.
ENDINGS = {
    "issued": 201,
    "validated": 200,
    "unauthorized": 401,
    "not found": 404,
    "no route": 404,
    "too large": 413,
    "malformed": 400,
    "driver fails": 500,
    "cut short": 500,
}


#: Another program may take the processor between a call's end and its measurement.
TRIES = 5


def broken_calls(keystone: Keystone) -> dict[str, Callable[[], Any]]:
    admin = keystone.admin
    return {
        "issued": lambda: keystone.issue(password("admin")),
        "validated": lambda: keystone.validate(admin),
        "unauthorized": lambda: keystone.validate("not a token"),
        "not found": lambda: keystone.call("GET", "/v3/users/nobody", None, admin),
        "no route": lambda: keystone.call("GET", "/no/such/path"),
        "too large": lambda: keystone.issue({"large": "a" * 200_000}),
        "malformed": lambda: keystone.issue({}),
        "driver fails": lambda: failing(keystone, ValueError),
        "cut short": lambda: failing(keystone, SystemExit),
    }


def failing(keystone: Keystone, error: type[BaseException]) -> Any:
    """Log in while the hasher, deep inside, sleeps and raises."""
    import bcrypt

    check, bcrypt.checkpw = bcrypt.checkpw, _raiser(error)
    try:
        return keystone.issue(password("admin"))
    except SystemExit:
        return None
    finally:
        bcrypt.checkpw = check


def _raiser(error: type[BaseException]) -> Callable[..., Any]:
    def fail(*_: Any) -> None:
        time.sleep(SLEEP_SECONDS)
        raise error

    return fail


def cut_short(keystone: Keystone, call: Callable[[], Any]) -> tuple[float, Breakdown]:
    """Make a call without a reply; return its duration and its breakdown."""
    moment = time.perf_counter()
    call()
    return time.perf_counter() - moment, keystone.breakdowns[-1]


def drive_endings(keystone: Keystone) -> dict[str, tuple[float, Breakdown]]:
    found = {}
    for name, call in broken_calls(keystone).items():
        if name == "cut short":
            tries = [cut_short(keystone, call) for _ in range(TRIES)]
            found[name] = min(tries, key=lambda one: one[0] - one[1].wall_seconds)
        else:
            reply = least_disturbed(call)
            found[name] = (reply.waited, reply.breakdown)
    return found


@pytest.fixture(scope="module")
def endings(processes, prepared, tmp_path_factory) -> dict[str, Any]:
    site = Site(processes, prepared, tmp_path_factory.mktemp("endings"))
    found: dict[str, Any] = site.run(drive_endings)
    return found


@pytest.mark.parametrize("ending", ENDINGS)
def test_cells_add_up_for_each_way_to_end(endings, ending) -> None:
    waited, breakdown = endings[ending]

    assert breakdown.status == ENDINGS[ending]
    assert all(spent >= 0 for spent in breakdown.cells.values())
    assert breakdown.wall_seconds == pytest.approx(waited, rel=0.05, abs=0.005)


@pytest.mark.parametrize("ending", ["driver fails", "cut short"])
def test_time_before_an_exception_stays_in_its_cell(endings, ending) -> None:
    waited, breakdown = endings[ending]

    spent = breakdown.cells["password_hash", "authenticate"]
    assert SLEEP_SECONDS <= spent < waited


def serve(keystone: Keystone, environ: dict[str, Any], read: int) -> float:
    """Serve a request whose client disconnects after so many parts."""
    parts = keystone.application(environ, lambda *_: None)
    moment = time.perf_counter()
    for _ in range(read):
        next(iter(parts))
    time.sleep(SLEEP_SECONDS)
    between = time.perf_counter() - moment
    parts.close()
    return between


def drive_aborts(keystone: Keystone) -> list[tuple[float, float, Breakdown]]:
    token = keystone.admin
    headers = {"X-Auth-Token": token, "X-Subject-Token": token}
    keystone.validate(token)
    found = []
    for read in (0, 1):
        environ = environ_of("GET", "/v3/auth/tokens", None, headers)
        moment = time.perf_counter()
        between = serve(keystone, environ, read)
        waited = time.perf_counter() - moment
        found.append((waited, between, keystone.breakdowns[-1]))
    return found


def test_aborted_request_excludes_the_wait_for_the_client(site) -> None:
    for waited, between, breakdown in site.run(drive_aborts):
        assert breakdown.status == 200
        assert breakdown.wall_seconds == pytest.approx(waited - between, abs=HALF_OF_IT)


def slow_down_policy(sleep: Callable[[float], None]) -> None:
    """Make every decision of oslo.policy slow."""
    from oslo_policy.policy import Enforcer

    enforce = Enforcer.enforce

    def slowly(*args: Any, **kwargs: Any) -> Any:
        sleep(SLEEP_SECONDS)
        return enforce(*args, **kwargs)

    Enforcer.enforce = slowly


def helped(seconds: float) -> None:
    """Sleep in a thread, which itself looks something up in the cache."""
    from keystone.token.provider import TOKENS_REGION

    def help_out() -> None:
        TOKENS_REGION.get("nothing")
        time.sleep(seconds)

    helper = threading.Thread(target=help_out)
    helper.start()
    helper.join()


def drive_helped(keystone: Keystone) -> tuple[Any, Any]:
    keystone.validate(keystone.admin)
    usual = keystone.validate(keystone.admin)
    slow_down_policy(helped)
    return usual, keystone.validate(keystone.admin)


def test_wait_for_a_thread_counts_and_its_work_does_not(site) -> None:
    usual, reply = site.run(drive_helped)

    assert reply.breakdown.wall_seconds == pytest.approx(reply.waited, abs=HALF_OF_IT)
    assert reply.breakdown.cells["policy", "enforce"] >= SLEEP_SECONDS
    assert reply.breakdown.counts == usual.breakdown.counts


def drive_threads(keystone: Keystone) -> list[Any]:
    keystone.validate(keystone.admin)
    together = threading.Barrier(2)

    def sleep(seconds: float) -> None:
        together.wait()
        time.sleep(seconds)

    slow_down_policy(sleep)
    return at_once(lambda: timed_call(keystone))


def at_once(call: Callable[[], Any]) -> list[Any]:
    """Make a call in two threads at once; return both results."""
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(call())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def timed_call(keystone: Keystone) -> tuple[float, Breakdown]:
    """Validate; return the seconds waited and the breakdown of this request."""
    token = keystone.admin
    headers = {"X-Auth-Token": token, "X-Subject-Token": token}
    environ = environ_of("GET", "/v3/auth/tokens", None, headers)
    before = len(keystone.breakdowns)
    moment = time.perf_counter()
    parts = keystone.application(environ, lambda *_: None)
    b"".join(parts)
    parts.close()
    waited = time.perf_counter() - moment
    ended = keystone.breakdowns[before:]
    return waited, min(
        ended, key=lambda breakdown: abs(breakdown.wall_seconds - waited)
    )


def drive_greenlets(keystone: Keystone) -> list[Any]:
    """Make the decision of one greenlet wait for that of another."""
    import greenlet

    keystone.validate(keystone.admin)
    found: list[Any] = []
    tasks: list[Any] = []

    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        other = tasks[1 - tasks.index(greenlet.getcurrent())]
        if not other.dead:
            other.switch()

    def work() -> None:
        found.append(timed_call(keystone))

    slow_down_policy(sleep)
    tasks.extend(greenlet.greenlet(work) for _ in range(2))
    while not all(task.dead for task in tasks):
        next(task for task in tasks if not task.dead).switch()
    return found


@pytest.mark.parametrize("drive", [drive_threads, drive_greenlets])
def test_concurrent_requests_have_exact_breakdowns(site, drive) -> None:
    found = site.run(drive)

    assert len(found) == 2
    for waited, breakdown in found:
        assert breakdown.status == 200
        assert breakdown.wall_seconds == pytest.approx(waited, abs=HALF_OF_IT)
        assert breakdown.cells["policy", "enforce"] >= SLEEP_SECONDS

"""A service behind auth_token: validations, calls to Keystone, token ages."""

from __future__ import annotations

import socket
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from auth_token_service import Service, listed
from keystone_client import Breakdown, Keystone, password
from keystone_site import Site
from test_telemetry import read

from keylag_otel import AuthTokenInstrumentor

Seen = dict[str, Any]


def source(module: str) -> str:
    """Return the text of a module, without importing it."""
    return Path(find_spec(module).origin).read_text()


#: Releases before 10.2 cache Keystone's rejections; those of Debian do not.
CACHES_REFUSALS = "_CACHE_INVALID" in source("keystonemiddleware.auth_token")
REFUSED_BY = "offline" if CACHES_REFUSALS else "online"


def measured(reader: Any, name: str) -> dict[tuple[Any, ...], Any]:
    """Return the points of a metric by the values of their attributes."""
    metric = read(reader).get(name)
    points = metric.data.data_points if metric else ()
    return {
        tuple(str(value) for _, value in sorted(point.attributes.items())): point
        for point in points
    }


def metrics_reader() -> Any:
    """Return a reader of the metrics of this process from now on."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    AuthTokenInstrumentor().instrument(meter_provider=MeterProvider([reader]))
    return reader


def cached_in(memcached: int, **options: Any) -> dict[str, Any]:
    return {"memcached_servers": f"127.0.0.1:{memcached}", **options}


def drive(keystone: Keystone, memcached: int) -> Seen:
    """Call a service with a healthy Keystone, then with failing ones."""
    reader = metrics_reader()
    story = tell_the_story(keystone, memcached, reader)
    return {"story": story, "failures": fail(keystone, reader)}


def tell_the_story(keystone: Keystone, memcached: int, reader: Any) -> Seen:
    """Call the service twice, with a wrong token, without one, and with encryption."""
    token = keystone.issue(password("admin")).token
    with listed(keystone) as url:
        service = Service(url, **cached_in(memcached))
        secure = Service(
            url,
            **cached_in(memcached),
            memcache_security_strategy="ENCRYPT",
            memcache_secret_key="secret",  # noqa: S106 - of this test's cache
        )
        answers = {
            "miss": service.call(token),
            "hit": service.call(token),
            "wrong": service.call("not-a-token"),
            "wrong again": service.call("not-a-token"),
            "missing": service.call(),
            "protected miss": secure.call(token),
            "protected hit": secure.call(token),
        }
    names = (
        "keystone.auth_token.call.duration",
        "keystone.auth_token.cache.age",
        "keystone.auth_token.cache.duration",
        "keystone.auth_token.request.duration",
    )
    counts = {
        name: {key: point.count for key, point in measured(reader, name).items()}
        for name in names
    }
    info = measured(reader, "keystone.auth_token.configuration.info")
    cache_time = measured(reader, "keystone.auth_token.cache.time")
    callers = [
        one.counter_sum("validations")
        for one in keystone.breakdowns
        if one.status == 200
    ]
    return {
        **answers,
        "counts": counts,
        "info": set(info),
        "cache time": [point.value for point in cache_time.values()],
        "validations in Keystone": sum(callers),
    }


def fail(keystone: Keystone, reader: Any) -> Seen:
    """Call services whose Keystone is down, hangs, or rejects the service."""
    token = keystone.issue(password("admin")).token
    with closing(socket.socket()) as hanging, listed(keystone) as url:
        hanging.bind(("127.0.0.1", 0))
        hanging.listen()
        hung = f"http://127.0.0.1:{hanging.getsockname()[1]}/v3"
        answers = {"hanging": Service(hung, http_connect_timeout=1).call(token)}
        answers["rejected"] = Service(url, password="wrong").call(token)  # noqa: S106
        late = Service(url, password="wrong", delay_auth_decision=True)  # noqa: S106
        answers["deferred"] = late.call(token)
        known = Service(url, http_request_max_retries=1)
        assert known.call(token)[0] == 200
    # Only requests with the service's own token are retried.
    answers["dead"] = known.call("another-token")
    calls = measured(reader, "keystone.auth_token.call.duration")
    return {**answers, "calls": set(calls)}


@pytest.fixture(scope="module")
def driven(processes, prepared, tmp_path_factory, memcached) -> Seen:
    site = Site(processes, prepared, tmp_path_factory.mktemp("auth_token"))
    environment = {"KEYLAG_SERVER_TIMING": "true"}
    seen: Seen = site.run(drive, memcached, environment=environment)
    return seen


@pytest.fixture(scope="module")
def story(driven: Seen) -> Seen:
    return driven["story"]


@pytest.fixture(scope="module")
def failures(driven: Seen) -> Seen:
    return driven["failures"]


def validations(breakdown: Breakdown) -> dict[tuple[str, ...], int]:
    """Return the number of validations with this result."""
    return {
        tuple(key[1:]): count
        for key, count in breakdown.counters.items()
        if key[0] == "auth_token_validations"
    }


@pytest.mark.parametrize(
    ("call", "status", "expected"),
    [
        ("miss", 200, {("online", "accepted"): 1}),
        ("hit", 200, {("offline", "accepted"): 1}),
        ("wrong", 401, {("online", "refused"): 1}),
        ("wrong again", 401, {(REFUSED_BY, "refused"): 1}),
        ("missing", 401, {}),
        ("protected miss", 200, {("online", "accepted"): 1}),
        ("protected hit", 200, {("offline", "accepted"): 1}),
    ],
)
def test_validations_are_counted_as_offline_or_online(
    story, call, status, expected
) -> None:
    answered, _, breakdown = story[call]

    assert (answered, breakdown.status) == (status, status)
    assert validations(breakdown) == expected


@pytest.mark.parametrize("call", ["miss", "hit", "wrong", "protected hit"])
def test_operation_auth_token_is_part_of_the_request(story, call) -> None:
    _, headers, breakdown = story[call]

    assert 0 < breakdown.operation("auth_token") < breakdown.wall_seconds
    assert breakdown.operation("auth_token") + breakdown.operation(
        "other"
    ) == pytest.approx(breakdown.wall_seconds)
    assert "cache.auth_token;dur=" in headers["Server-Timing"]


def test_only_a_miss_waits_for_keystone(story) -> None:
    assert story["miss"][2].phase("keystone") > 0
    assert story["hit"][2].phase("keystone") == 0


def test_encryption_of_cached_tokens_is_token_crypto(story) -> None:
    assert story["protected hit"][2].phase("token_crypto") > 0
    assert story["hit"][2].phase("token_crypto") == 0
    assert {("memcached", "none"), ("memcached", "encrypt")} == story["info"]
    assert story["cache time"] == [300]


def test_round_trips_to_the_token_cache_are_counted(story) -> None:
    trips = {name: story[name][2].counts["cache_calls"] for name in ("miss", "hit")}

    assert trips == {"miss": 2, "hit": 1}
    assert story["counts"]["keystone.auth_token.cache.duration"] == {
        ("get",): 6,
        ("set",): 4 if CACHES_REFUSALS else 2,
    }


def test_requests_to_keystone_are_recorded_with_their_status(story) -> None:
    calls = story["counts"]["keystone.auth_token.call.duration"]

    validated = {key: n for key, n in calls.items() if "validate" in key}
    # Two services: each logs in once, and has its own cache keys.
    refusals = 1 if CACHES_REFUSALS else 2
    assert validated == {("200", "validate"): 2, ("404", "validate"): refusals}
    assert calls[("201", "authenticate")] == 2


def test_keystone_counts_validations_by_service(story) -> None:
    assert story["validations in Keystone"] == 2


def test_hits_have_an_age_and_first_uses_have_none(story) -> None:
    # The first look-up of the second service is a token that this process has cached.
    assert story["counts"]["keystone.auth_token.cache.age"] == {
        ("hit",): 2,
        ("miss",): 1,
    }


def test_first_use_is_a_miss_in_each_simulation(story) -> None:
    first, again = story["miss"][2], story["hit"][2]

    assert first.counter_sum("replayed_misses") == 4
    assert again.counter_sum("replayed_misses") == 0


@pytest.mark.parametrize(
    ("keystone", "status", "retries"),
    [
        ("dead", 503, {"connection": 1}),
        ("hanging", 500, {}),
        ("rejected", 503, {"service_refused": 1}),
        ("deferred", 200, {"service_refused": 1}),
    ],
)
def test_unreachable_keystone_counts_as_unavailable(
    failures, keystone, status, retries
) -> None:
    answered, _, breakdown = failures[keystone]

    assert answered == status
    assert validations(breakdown) == {("online", "unavailable"): 1}
    again = {k[1]: n for k, n in breakdown.counters.items() if k[0] == "retries"}
    assert again == retries
    assert breakdown.phase("keystone") > 0


def test_failed_requests_have_an_error_type(failures) -> None:
    kinds = {kind for key in failures["calls"] for kind in key}

    assert {"timeout", "connection", "discover", "authenticate", "401"} <= kinds

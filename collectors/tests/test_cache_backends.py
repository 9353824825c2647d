"""Keylag's cache counters match the statistics of the cache servers."""

from __future__ import annotations

from typing import Any

import pytest
from cache_backends import BACKENDS, SERVER_COUNTS, SERVICE_AGGREGATOR
from keystone_client import Breakdown, Keystone, Reply, password
from keystone_site import Site

#: The expectations are those of Keystone 30.
pytestmark = pytest.mark.newest

Seen = dict[str, Any]
CALLS = ("issue", "validate", "issue_warm", "validate_warm")


@pytest.fixture(scope="module")
def seen(processes, prepared, tmp_path_factory, request) -> Any:
    """By backend: Keylag's counters, and the statistics of its server."""
    kept: dict[str, Seen] = {}

    def look(key: str) -> Seen:
        if key not in kept:
            backend = BACKENDS[key]
            port = request.getfixturevalue(backend.server) if backend.server else 0
            site = Site(processes, prepared, tmp_path_factory.mktemp(key))
            options = backend.configuration(port)
            kept[key] = site.run(drive, backend.server, port, options=options)
        return kept[key]

    return look


def drive(keystone: Keystone, server: str | None, port: int) -> Seen:
    """Issue and validate, cold and warm, and revoke; return both counts."""
    token = keystone.issue(password("admin")).token
    calls = {
        "issue": lambda: keystone.issue(password("admin")),
        "validate": lambda: keystone.validate(token),
        "issue_warm": lambda: keystone.issue(password("admin")),
        "validate_warm": lambda: keystone.validate(token),
        "revoke": lambda: revoke(keystone),
    }
    found: Seen = {}
    for name, call in calls.items():
        before = served(server, port)
        reply = call()
        after = served(server, port)
        assert reply.status in (200, 201, 204), reply.content
        found[name] = reply.breakdown
        found[f"{name} served"] = {key: after[key] - before[key] for key in after}
    return found


def served(server: str | None, port: int) -> dict[str, int]:
    return SERVER_COUNTS[server](port) if server else {}


def revoke(keystone: Keystone) -> Any:
    token = keystone.issue(password("admin")).token
    headers = {"X-Subject-Token": token}
    return keystone.call("DELETE", "/v3/auth/tokens", None, keystone.admin, **headers)


def looked_up(breakdown: Breakdown, layer: str, result: str) -> int:
    """Return the look-ups of a layer with this result, over all regions."""
    return sum(
        count
        for (name, *values), count in breakdown.counters.items()
        if name == "cache_calls" and values[1:] == [layer, "get", result]
    )


def changed(breakdown: Breakdown, layer: str, operation: str) -> int:
    return sum(
        count
        for (name, *values), count in breakdown.counters.items()
        if name == "cache_calls" and values[1:3] == [layer, operation]
    )


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("key", SERVICE_AGGREGATOR)
def test_look_ups_hits_and_changes_match_the_server(seen, key, call) -> None:
    breakdown, server = seen(key)[call], seen(key)[f"{call} served"]

    hits = looked_up(breakdown, "backend", "hit")
    misses = looked_up(breakdown, "backend", "miss")
    assert hits + misses == server["get"]
    assert hits == server["hit"]
    assert changed(breakdown, "backend", "set") == server["set"]
    assert breakdown.counts["cache_calls"] == server["get"] + server["set"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("key", SERVICE_AGGREGATOR)
def test_bytes_match_the_server(seen, key, call) -> None:
    breakdown, server = seen(key)[call], seen(key)[f"{call} served"]
    calls = server["get"] + server["set"]
    around_each = 160  # a command with a key of 40 bytes, and its response

    received = sum_of(breakdown, "cache_bytes", "receive")
    sent = sum_of(breakdown, "cache_bytes", "transmit")

    assert 0 <= server["sent"] - received <= around_each * (calls + 1)
    assert 0 <= server["received"] - sent <= around_each * (calls + 1)
    assert (received > 0) == (server["hit"] > 0)
    assert (sent > 0) == (server["set"] > 0)


def sum_of(breakdown: Breakdown, instrument: str, last: str) -> int:
    return sum(
        count
        for (name, *values), count in breakdown.counters.items()
        if name == instrument and values[-1] == last
    )


def memoized_hits(breakdown: Breakdown) -> int:
    return sum_of(breakdown, "memoized_calls", "hit")


@pytest.mark.parametrize("key", ["memory", "null"])
def test_local_backends_count_no_bytes(seen, key) -> None:
    breakdown = seen(key)["validate_warm"]

    assert breakdown.counter_sum("cache_bytes") == 0
    assert breakdown.counter_sum("cache_errors") == 0


def test_null_backend_counts_only_request_local_hits(seen) -> None:
    breakdown = seen("null")["validate_warm"]

    assert breakdown.counts["cache_calls"] == 0
    assert changed(breakdown, "backend", "get") == 0
    assert looked_up(breakdown, "request_local", "hit") > 10
    assert looked_up(breakdown, "request_local", "hit") == memoized_hits(breakdown)


def test_redis_bypasses_the_request_local_cache(seen) -> None:
    redis, pool = seen("redis")["validate_warm"], seen("memcache_pool")["validate_warm"]

    assert redis.counts["cache_calls"] > 5 * pool.counts["cache_calls"]
    assert changed(redis, "request_local", "get") == 0
    assert looked_up(pool, "request_local", "hit") > pool.counts["cache_calls"]


@pytest.mark.parametrize("key", SERVICE_AGGREGATOR)
def test_hits_of_memoized_functions_are_those_of_both_layers(seen, key) -> None:
    """The ids of regions are in a region of their own."""
    breakdown = seen(key)["validate_warm"]
    ids = breakdown.counter_sum(
        "cache_calls", "invalidation region", "backend", "get", "hit"
    )

    local = looked_up(breakdown, "request_local", "hit")
    stored = looked_up(breakdown, "backend", "hit") - ids
    assert local + stored == memoized_hits(breakdown) > 0


@pytest.mark.parametrize("key", [key for key in BACKENDS if key != "null"])
def test_region_ids_are_looked_up_in_the_invalidation_region(seen, key) -> None:
    breakdown = seen(key)["validate_warm"]

    ids = breakdown.counter_sum("cache_calls", "invalidation region")
    values = breakdown.counter_sum("cache_calls", "tokens")
    assert ids > 0
    assert values > 0


@pytest.mark.parametrize("key", [key for key in BACKENDS if key != "null"])
def test_memoized_function_misses_once(seen, key) -> None:
    first, second = seen(key)["validate"], seen(key)["validate_warm"]
    name = "keystone.token.provider:check_revocation_v3"

    assert first.counter_sum("memoized_calls", "tokens", name, "miss") == 1
    assert first.counter_sum("memoized_calls", "tokens", name, "hit") == 2
    assert second.counter_sum("memoized_calls", "tokens", name, "miss") == 0
    assert second.counter_sum("memoized_calls", "tokens", name, "hit") == 3


def test_without_backend_only_the_request_memoizes(seen) -> None:
    breakdown = seen("null")["validate_warm"]
    name = "keystone.token.provider:check_revocation_v3"

    assert breakdown.counter_sum("memoized_calls", "tokens", name) == 3
    assert breakdown.counter_sum("memoized_calls", "tokens", name, "miss") >= 1


@pytest.mark.parametrize("key", BACKENDS)
def test_revocation_counts_an_invalidation(seen, key) -> None:
    breakdown = seen(key)["revoke"]

    assert breakdown.counter_sum("cache_invalidations", "tokens") >= 1
    assert breakdown.counter_sum("revocation_events_written", "audit_id") == 1


def drive_dead(keystone: Keystone) -> list[Reply]:
    """Issue tokens while no cache server responds."""
    return [keystone.issue(password("admin")) for _ in range(5)]


@pytest.mark.parametrize("key", SERVICE_AGGREGATOR)
def test_dead_cache_server_is_counted_and_cells_add_up(site, key) -> None:
    nobody_listens = 1
    options = SERVICE_AGGREGATOR[key].configuration(nobody_listens)
    replies = site.run(drive_dead, options=options)

    # On a busy machine a caller may wait for the processor, but not every time.
    unseen = min(reply.waited - reply.breakdown.wall_seconds for reply in replies)
    assert 0 <= unseen < 0.02
    assert replies[0].breakdown.counter_sum("cache_errors") > 0
    assert all(reply.breakdown.status == reply.status for reply in replies)

"""What Keylag counts of the cache is what the cache's server counts itself."""

from __future__ import annotations

from typing import Any

import pytest
from cache_backends import BACKENDS, SERVED, SERVER_COUNTS
from keystone_client import Booked, Keystone, Reply, password
from keystone_site import Site

#: What it says is what Keystone 30 does.
pytestmark = pytest.mark.newest

Seen = dict[str, Any]
CALLS = ("issue", "validate", "issue_warm", "validate_warm")


@pytest.fixture(scope="module")
def seen(processes, prepared, tmp_path_factory, request) -> Any:
    """By backend: what was booked, and what its server counted meanwhile."""
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
    """Issue and validate, cold and warm, and revoke; count on both sides."""
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
        found[name] = reply.booked
        found[f"{name} served"] = {key: after[key] - before[key] for key in after}
    return found


def served(server: str | None, port: int) -> dict[str, int]:
    return SERVER_COUNTS[server](port) if server else {}


def revoke(keystone: Keystone) -> Any:
    token = keystone.issue(password("admin")).token
    headers = {"X-Subject-Token": token}
    return keystone.call("DELETE", "/v3/auth/tokens", None, keystone.admin, **headers)


def looked_up(booked: Booked, layer: str, result: str) -> int:
    """Return look-ups of a layer that ended so, over all regions."""
    return sum(
        count
        for (name, *values), count in booked.tallies.items()
        if name == "cache_calls" and values[1:] == [layer, "get", result]
    )


def changed(booked: Booked, layer: str, operation: str) -> int:
    return sum(
        count
        for (name, *values), count in booked.tallies.items()
        if name == "cache_calls" and values[1:3] == [layer, operation]
    )


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("key", SERVED)
def test_look_ups_hits_and_changes_are_those_that_the_server_counted(
    seen, key, call
) -> None:
    booked, server = seen(key)[call], seen(key)[f"{call} served"]

    hits = looked_up(booked, "backend", "hit")
    misses = looked_up(booked, "backend", "miss")
    assert hits + misses == server["get"]
    assert hits == server["hit"]
    assert changed(booked, "backend", "set") == server["set"]
    assert booked.counts["cache_calls"] == server["get"] + server["set"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("key", SERVED)
def test_bytes_are_the_values_among_those_that_the_server_moved(
    seen, key, call
) -> None:
    booked, server = seen(key)[call], seen(key)[f"{call} served"]
    calls = server["get"] + server["set"]
    around_each = 160  # a command with a key of 40, its answer, the question itself

    received = sum_of(booked, "cache_bytes", "receive")
    sent = sum_of(booked, "cache_bytes", "transmit")

    assert 0 <= server["sent"] - received <= around_each * (calls + 1)
    assert 0 <= server["received"] - sent <= around_each * (calls + 1)
    assert (received > 0) == (server["hit"] > 0)
    assert (sent > 0) == (server["set"] > 0)


def sum_of(booked: Booked, instrument: str, last: str) -> int:
    return sum(
        count
        for (name, *values), count in booked.tallies.items()
        if name == instrument and values[-1] == last
    )


@pytest.mark.parametrize("key", ["memory", "null"])
def test_a_cache_without_a_server_moves_no_bytes(seen, key) -> None:
    booked = seen(key)["validate_warm"]

    assert booked.tallied("cache_bytes") == 0
    assert booked.tallied("cache_errors") == 0


def test_the_null_backend_is_asked_nothing_and_the_local_layer_is(seen) -> None:
    booked = seen("null")["validate_warm"]

    assert booked.counts["cache_calls"] == 0
    assert changed(booked, "backend", "get") == 0
    assert changed(booked, "request_local", "get") > 10


def test_redis_is_asked_every_time_because_the_local_layer_is_passed_by(seen) -> None:
    redis, pool = seen("redis")["validate_warm"], seen("memcache_pool")["validate_warm"]

    assert redis.counts["cache_calls"] > 5 * pool.counts["cache_calls"]
    assert changed(redis, "request_local", "get") == 0
    assert looked_up(pool, "request_local", "hit") > pool.counts["cache_calls"]
    assert looked_up(pool, "request_local", "miss") == pool.counts["cache_calls"]


@pytest.mark.parametrize("key", [key for key in BACKENDS if key != "null"])
def test_a_regions_own_id_is_looked_up_in_a_region_of_its_own(seen, key) -> None:
    booked = seen(key)["validate_warm"]

    ids = booked.tallied("cache_calls", "invalidation region")
    values = booked.tallied("cache_calls", "tokens")
    assert ids > 0
    assert values > 0


@pytest.mark.parametrize("key", [key for key in BACKENDS if key != "null"])
def test_a_memoized_function_runs_once_and_is_then_remembered(seen, key) -> None:
    first, second = seen(key)["validate"], seen(key)["validate_warm"]
    name = "keystone.token.provider:check_revocation_v3"

    assert first.tallied("memoized_calls", "tokens", name, "miss") == 1
    assert first.tallied("memoized_calls", "tokens", name, "hit") == 2
    assert second.tallied("memoized_calls", "tokens", name, "miss") == 0
    assert second.tallied("memoized_calls", "tokens", name, "hit") == 3


def test_without_a_cache_a_memoized_function_runs_until_the_request_knows(seen) -> None:
    booked = seen("null")["validate_warm"]
    name = "keystone.token.provider:check_revocation_v3"

    assert booked.tallied("memoized_calls", "tokens", name) == 3
    assert booked.tallied("memoized_calls", "tokens", name, "miss") >= 1


@pytest.mark.parametrize("key", BACKENDS)
def test_revoking_a_token_invalidates_its_region_and_is_counted(seen, key) -> None:
    booked = seen(key)["revoke"]

    assert booked.tallied("cache_invalidations", "tokens") >= 1
    assert booked.tallied("revocation_events_written", "audit_id") == 1


def drive_dead(keystone: Keystone) -> list[Reply]:
    """Ask for tokens while no cache server answers."""
    return [keystone.issue(password("admin")) for _ in range(5)]


@pytest.mark.parametrize("key", SERVED)
def test_a_dead_server_is_counted_and_its_time_still_adds_up(site, key) -> None:
    nobody_listens = 1
    options = SERVED[key].configuration(nobody_listens)
    replies = site.run(drive_dead, options=options)

    # On a busy machine a caller may wait for the processor, but not every time.
    unseen = min(reply.waited - reply.booked.wall for reply in replies)
    assert 0 <= unseen < 0.02
    assert replies[0].booked.tallied("cache_errors") > 0
    assert all(reply.booked.status == reply.status for reply in replies)

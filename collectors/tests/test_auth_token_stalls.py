"""A hanging memcached and an expiring token: the effect on a service."""

from __future__ import annotations

from typing import Any

import pytest
from auth_token_service import Memcached, Service, listed, memcached, until
from keystone_client import Keystone, password
from keystone_site import Site
from test_auth_token import cached_in, measured, metrics_reader, validations

#: Long, and what it says is what today's keystonemiddleware does.
pytestmark = [pytest.mark.newest, pytest.mark.matrix]

Seen = dict[str, Any]


def hang(keystone: Keystone, server: Memcached) -> Seen:
    """Call while memcached works, while it hangs, and when the client skips it."""
    reader = metrics_reader()
    token = keystone.issue(password("admin")).token
    with listed(keystone) as url:
        service = Service(url, **cached_in(server.port), memcache_pool_socket_timeout=1)
        until(
            lambda: ("offline", "accepted") in validations(service.call(token)[2]),
            "a hit",
        )
        with server.hanging():
            hung, gone = service.call(token), service.call(token)
    durations = measured(reader, "keystone.auth_token.cache.duration")
    slow = sum(sum(point.bucket_counts[9:]) for point in durations.values())
    return {"hung": hung, "gone": gone, "slow": slow}


def test_hanging_memcached_stalls_one_request_and_is_counted(
    site: Site,
) -> None:
    with memcached() as server:
        seen = site.run(hang, server)

    for call in ("hung", "gone"):
        status, _, breakdown = seen[call]
        assert (status, validations(breakdown)) == (200, {("online", "accepted"): 1})
    hung, gone = seen["hung"][2], seen["gone"][2]
    assert hung.counter_sum("token_cache_errors", "server_dead") == 1
    assert gone.counter_sum("token_cache_errors") == 0
    # One timeout of one second: the next request skips this server.
    assert hung.phase("cache") > 0.9
    assert seen["slow"] >= 1


def outlive(keystone: Keystone) -> Seen:
    """Use a token until it has expired; the token cache still has it."""
    metrics_reader()
    with listed(keystone) as url:
        service, token = Service(url), ""

        def fresh() -> bool:
            nonlocal token
            token = keystone.issue(password("admin")).token
            return service.call(token)[0] == 200

        until(fresh, "a token that is validated before it expires")
        until(lambda: service.call(token)[0] == 401, "expired")
        return {"expired": service.call(token)}


def test_expired_token_is_refused_despite_the_cache(site: Site) -> None:
    status, _, breakdown = site.run(outlive, options={"token": {"expiration": 4}})[
        "expired"
    ]

    assert status == 401
    # The cache still has it, so Keystone gets no request.
    assert validations(breakdown) == {("offline", "accepted"): 1}
    assert breakdown.phase("keystone") == 0

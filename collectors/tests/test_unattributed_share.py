"""Phase `other` is below a tenth of the time of the middle one of many requests."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any

import pytest
from auth_scenarios import application_credential, make_secret
from cache_backends import BACKENDS
from keystone_client import Keystone, password

#: The expectations are those of Keystone 30.
pytestmark = pytest.mark.newest

BOUND = 0.10
REQUESTS = {"null": 8, "memcache_pool": 40, "redis": 20}


def drive(keystone: Keystone, requests: int) -> dict[str, float]:
    """Return the median share of `other` by call; one pause makes no median."""
    secret = application_credential(make_secret(keystone))
    calls = {
        "password": lambda: keystone.issue(password("admin")),
        "application credential": lambda: keystone.issue(secret),
        "validate": lambda: keystone.validate(keystone.admin),
    }
    found = {}
    for name, call in calls.items():
        call()
        found[name] = median(other_share(call().breakdown) for _ in range(requests))
    return found


def other_share(breakdown: Any) -> float:
    spent: Counter[str] = Counter()
    for (phase, _), seconds in breakdown.cells.items():
        spent[phase] += seconds
    return spent["other"] / spent.total()


@pytest.mark.parametrize("key", REQUESTS)
def test_phase_other_is_less_than_a_tenth(site, request, key) -> None:
    backend = BACKENDS[key]
    port = request.getfixturevalue(backend.server) if backend.server else 0

    other = site.run(drive, REQUESTS[key], options=backend.configuration(port))

    print(key, {name: f"{share:.1%}" for name, share in other.items()})  # noqa: T201
    assert {name: share for name, share in other.items() if share >= BOUND} == {}

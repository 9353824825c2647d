"""Phase `other` is below a tenth of the time, summed over many requests."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from auth_scenarios import application_credential, make_secret
from cache_backends import BACKENDS
from keystone_client import Keystone, password

#: The expectations are those of Keystone 30.
pytestmark = pytest.mark.newest

BOUND = 0.10
REQUESTS = {"null": 8, "memcache_pool": 40, "redis": 20}


def drive(keystone: Keystone, requests: int) -> dict[str, dict[str, float]]:
    """Return each call's shares by phase."""
    secret = application_credential(make_secret(keystone))
    calls = {
        "password": lambda: keystone.issue(password("admin")),
        "application credential": lambda: keystone.issue(secret),
        "validate": lambda: keystone.validate(keystone.admin),
    }
    found = {}
    for name, call in calls.items():
        call()
        found[name] = shares([call().breakdown for _ in range(requests)])
    return found


def shares(finished: list[Any]) -> dict[str, float]:
    spent: Counter[str] = Counter()
    for breakdown in finished:
        for (phase, _), seconds in breakdown.cells.items():
            spent[phase] += seconds
    return {phase: seconds / sum(spent.values()) for phase, seconds in spent.items()}


@pytest.mark.parametrize("key", REQUESTS)
def test_phase_other_is_less_than_a_tenth(site, request, key) -> None:
    backend = BACKENDS[key]
    port = request.getfixturevalue(backend.server) if backend.server else 0

    found = site.run(drive, REQUESTS[key], options=backend.configuration(port))

    other = {name: share["other"] for name, share in found.items()}
    print(key, {name: f"{share:.1%}" for name, share in other.items()})  # noqa: T201
    assert {name: share for name, share in other.items() if share >= BOUND} == {}

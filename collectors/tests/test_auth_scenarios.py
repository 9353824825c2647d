"""Each kind of log-in, successful or rejected, has labels and adds up."""

from __future__ import annotations

from typing import Any

import pytest
from auth_scenarios import OPTIONS, accepted, refused
from keystone_client import Keystone, Reply
from keystone_site import Site

#: The expectations are those of Keystone 30.
pytestmark = pytest.mark.newest

#: Way to its label, and operations that have to show time.
ACCEPTED = {
    "password": ("password", {"authenticate", "scope", "issue", "roles", "catalog"}),
    "unscoped": ("password", {"authenticate", "issue"}),
    "domain": ("password", {"authenticate", "scope", "issue", "roles", "catalog"}),
    "system": ("password", {"authenticate", "issue", "roles"}),
    "trust": ("password", {"authenticate", "scope", "issue", "roles"}),
    "totp": ("totp", {"authenticate", "issue"}),
    "token": ("token", {"authenticate", "validate", "check_revocation", "issue"}),
    "application_credential": (
        "application_credential",
        {"authenticate", "scope", "issue", "roles"},
    ),
    "federation": ("openid", {"authenticate", "issue"}),
}

#: Way to its status, label and reason.
REFUSED = {
    "wrong password": (401, "password", "Unauthorized"),
    "nobody": (401, "password", "UserNotFound"),
    "disabled": (401, "password", "Unauthorized"),
    "locked": (401, "password", "AccountLocked"),
    "expired": (401, "password", "PasswordExpired"),
    "half": (401, "password", "InsufficientAuthMethods"),
    "unknown method": (401, "other", "AuthMethodNotSupported"),
    "totp": (401, "totp", "Unauthorized"),
    "token": (404, "token", "TokenNotFound"),
    "application_credential": (
        *(404, "application_credential", "ApplicationCredentialNotFound"),
    ),
}


def drive(keystone: Keystone) -> dict[str, Reply]:
    return {
        **accepted(keystone),
        **{f"not {k}": r for k, r in refused(keystone).items()},
    }


@pytest.fixture(scope="module")
def replies(processes, prepared, tmp_path_factory) -> dict[str, Reply]:
    site = Site(processes, prepared, tmp_path_factory.mktemp("log-ins"))
    found: dict[str, Reply] = site.run(drive, options=OPTIONS)
    return found


@pytest.mark.parametrize("way", ACCEPTED)
def test_logins_have_label_and_operations(replies, way) -> None:
    reply = replies[way]
    label, operations = ACCEPTED[way]

    assert reply.status == 201, reply.content
    assert reply.breakdown.auth_method == label
    assert {step for step in operations if not reply.breakdown.operation(step)} == set()
    assert reply.breakdown.counter_sum("auth_failures") == 0


@pytest.mark.parametrize("way", REFUSED)
def test_refusals_are_counted_by_reason(replies, way) -> None:
    reply = replies[f"not {way}"]
    status, label, reason = REFUSED[way]

    assert reply.status == status, reply.content
    assert failures(reply) == {(label, reason): 1}
    assert reply.breakdown.auth_method == label
    assert reply.breakdown.operation("authenticate") > 0
    assert reply.breakdown.operation("issue") == 0


def failures(reply: Reply) -> dict[tuple[Any, ...], int]:
    counters = reply.breakdown.counters
    return {tuple(k[1:]): n for k, n in counters.items() if k[0] == "auth_failures"}


@pytest.mark.parametrize("way", [*ACCEPTED, *(f"not {way}" for way in REFUSED)])
def test_cells_add_up_to_the_wait_of_the_caller(replies, way) -> None:
    reply = replies[way]

    assert reply.breakdown.wall_seconds <= reply.waited
    assert reply.breakdown.wall_seconds == pytest.approx(
        reply.waited, rel=0.05, abs=0.005
    )


@pytest.mark.parametrize(
    ("way", "hashed"),
    [("password", 1), ("application_credential", 1), ("token", 0), ("not locked", 0)],
)
def test_only_secrets_cause_hashing_time(replies, way, hashed) -> None:
    breakdown = replies[way].breakdown

    assert breakdown.counter_sum("password_hashes", "bcrypt", 4, "check") == hashed
    assert (breakdown.cells.get(("password_hash", "authenticate"), 0) > 0) == bool(
        hashed
    )

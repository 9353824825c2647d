"""Each way to log in, or to be refused, is labelled, timed and adds up."""

from __future__ import annotations

from typing import Any

import pytest
from keystone_client import Keystone, Reply
from keystone_site import Site
from log_ins import OPTIONS, accepted, refused

#: What it says is what Keystone 30 does.
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
def test_who_logs_in_is_labelled_with_how_and_shows_each_step(replies, way) -> None:
    reply = replies[way]
    label, operations = ACCEPTED[way]

    assert reply.status == 201, reply.content
    assert reply.booked.auth_method == label
    assert {step for step in operations if not reply.booked.operation(step)} == set()
    assert reply.booked.tallied("auth_failures") == 0


@pytest.mark.parametrize("way", REFUSED)
def test_who_is_refused_is_counted_with_the_reason(replies, way) -> None:
    reply = replies[f"not {way}"]
    status, label, reason = REFUSED[way]

    assert reply.status == status, reply.content
    assert failures(reply) == {(label, reason): 1}
    assert reply.booked.auth_method == label
    assert reply.booked.operation("authenticate") > 0
    assert reply.booked.operation("issue") == 0


def failures(reply: Reply) -> dict[tuple[Any, ...], int]:
    tallies = reply.booked.tallies
    return {tuple(k[1:]): n for k, n in tallies.items() if k[0] == "auth_failures"}


@pytest.mark.parametrize("way", [*ACCEPTED, *(f"not {way}" for way in REFUSED)])
def test_cells_add_up_to_what_the_caller_waited(replies, way) -> None:
    reply = replies[way]

    assert reply.booked.wall <= reply.waited
    assert reply.booked.wall == pytest.approx(reply.waited, rel=0.05, abs=0.005)


@pytest.mark.parametrize(
    ("way", "hashed"),
    [("password", 1), ("application_credential", 1), ("token", 0), ("not locked", 0)],
)
def test_time_is_spent_on_hashing_where_there_is_something_to_hash(
    replies, way, hashed
) -> None:
    booked = replies[way].booked

    assert booked.tallied("password_hashes", "bcrypt", 4, "check") == hashed
    assert (booked.cells.get(("password_hash", "authenticate"), 0) > 0) == bool(hashed)

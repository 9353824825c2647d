"""Time in a real LDAP directory is phase `ldap`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from backend_servers import DEBIAN_LIBRARIES
from delay_injection import DelayEffect, DelayPoint, measure, table
from keystone_client import Keystone, Reply, least_disturbed

#: The expectations are those of Keystone 30.
pytestmark = pytest.mark.newest

OPTIONS = {
    "identity": {
        "password_hash_rounds": 4,
        "domain_specific_drivers_enabled": True,
        "domain_configurations_from_database": True,
    }
}

PLACES = (
    DelayPoint(
        "LDAP search",
        "ldap.ldapobject:SimpleLDAPObject.search_ext",
        "log in",
        ("ldap", "authenticate"),
    ),
    DelayPoint(
        "LDAP bind",
        "ldap.ldapobject:SimpleLDAPObject.simple_bind_s",
        "fail to log in",  # who succeeded is found bound in the pool
        ("ldap", "authenticate"),
    ),
)


def find_ldap() -> str:
    """Make python-ldap importable; return the reason if it is not, or None."""
    sys.path.append(DEBIAN_LIBRARIES)
    try:
        import ldap  # noqa: F401
        import ldappool  # noqa: F401
    except ImportError as error:
        return (
            f"python-ldap is missing: {error}; `make setup` installs Debian's "
            "python3-ldap, which works with Debian's own Python"
        )
    return ""


def configure(keystone: Keystone, port: int) -> None:
    """Create a domain whose users are in the LDAP server."""
    domain = keystone.make("/v3/domains", "domain", {"name": "directory"})
    config = {
        "identity": {"driver": "ldap"},
        "ldap": {
            "url": f"ldap://127.0.0.1:{port}",
            "user": "cn=root,dc=example,dc=org",
            "password": "root",
            "suffix": "dc=example,dc=org",
            "user_tree_dn": "ou=users,dc=example,dc=org",
            "user_objectclass": "inetOrgPerson",
            "user_id_attribute": "uid",
            "user_name_attribute": "uid",
        },
    }
    path = f"/v3/domains/{domain['id']}/config"
    reply = keystone.call("PUT", path, {"config": config}, keystone.admin)
    assert reply.status == 201, reply.content


def log_in(keystone: Keystone, secret: str = "secret") -> Reply:  # noqa: S107
    user = {"name": "ada", "password": secret, "domain": {"name": "directory"}}
    identity = {"methods": ["password"], "password": {"user": user}}
    return keystone.issue({"identity": identity, "scope": "unscoped"})


def drive(keystone: Keystone, port: int) -> dict[str, Any]:
    missing = find_ldap()
    if missing:
        return {"missing": missing}
    configure(keystone, port)
    log_in(keystone)
    found: dict[str, Any] = {
        "accepted": least_disturbed(lambda: log_in(keystone)),
        "refused": least_disturbed(lambda: log_in(keystone, "wrong")),
    }
    found["rows"] = [measure(place, armed(keystone, place.call)) for place in PLACES]
    return found


def armed(keystone: Keystone, name: str) -> Callable[..., Reply]:
    secret = {"log in": "secret", "fail to log in": "wrong"}[name]

    def call(arm: Callable[[], Any] = int) -> Reply:
        arm()
        return log_in(keystone, secret)

    return call


@pytest.fixture(scope="module")
def found(
    processes, prepared, tmp_path_factory, slapd, delay_effects
) -> dict[str, Any]:
    from keystone_site import Site

    site = Site(processes, prepared, tmp_path_factory.mktemp("ldap"))
    seen: dict[str, Any] = site.run(drive, slapd, options=OPTIONS)
    if "missing" in seen:
        pytest.skip(seen["missing"])
    delay_effects.extend(seen["rows"])
    return seen


@pytest.mark.parametrize(
    ("way", "status", "hashes"), [("accepted", 201, 0), ("refused", 401, 0)]
)
def test_directory_login_is_ldap_time_without_hashing(
    found, way, status, hashes
) -> None:
    reply = found[way]

    assert reply.status == status, reply.content
    assert reply.breakdown.cells["ldap", "authenticate"] > 0
    assert reply.breakdown.counter_sum("password_hashes") == hashes
    assert reply.breakdown.wall_seconds == pytest.approx(
        reply.waited, rel=0.05, abs=0.005
    )


@pytest.mark.parametrize(
    "number", range(len(PLACES)), ids=[place.name for place in PLACES]
)
def test_slow_directory_is_ldap_time_only(found, number) -> None:
    row: DelayEffect = found["rows"][number]

    bound = 0.05 * row.injected
    assert row.injected > 0, "the place was not reached"
    assert row.seen == pytest.approx(row.injected, abs=bound), table([row])
    assert abs(row.other_cells) <= bound, table([row])

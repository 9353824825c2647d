"""An injected delay appears in its cell only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cache_backends import BACKENDS
from delay_injection import DelayEffect, DelayPoint, measure, table
from keystone_client import Keystone, Reply, password
from keystone_site import Site

#: The expectations are those of Keystone 30.
pytestmark = pytest.mark.newest

TOLERANCE = 0.05

PLACES = (
    DelayPoint(
        "database driver",
        "statement:FROM revocation_event",
        "validate_new",
        ("sql", "check_revocation"),
    ),
    DelayPoint(
        "database driver",
        "statement:local_user",
        "issue",
        ("sql", "authenticate"),
    ),
    DelayPoint(
        "database connect",
        "sqlite3.dbapi2:connect",
        "validate_new",
        ("sql", "check_revocation"),
        "list_events",
    ),
    DelayPoint(
        "pool checkout",
        "sqlalchemy.pool.base:_ConnectionFairy._checkout",
        "validate_new",
        ("sql_pool", "check_revocation"),
        "list_events",
    ),
    DelayPoint(
        "loading of objects",
        "sqlalchemy.orm.loading:instances",
        "issue",
        ("orm", "authenticate"),
    ),
    DelayPoint(
        "memcached client, get",
        "memcache:Client.get",
        "validate",
        ("cache", "check_revocation"),
        "check_revocation",
    ),
    DelayPoint(
        "memcached client, set",
        "memcache:Client.set",
        "issue",
        ("cache", "issue"),
        "issue_token",
    ),
    DelayPoint("hasher", "bcrypt:checkpw", "issue", ("password_hash", "authenticate")),
    DelayPoint(
        "key loading",
        "keystone.common.fernet_utils:FernetUtils._get_key_files",
        "issue",
        ("token_crypto", "issue"),
    ),
    DelayPoint(
        "token encryption",
        "cryptography.fernet:MultiFernet.encrypt",
        "issue",
        ("token_crypto", "issue"),
    ),
    DelayPoint(
        "revocation matching",
        "keystone.models.revoke_model:matches",
        "validate_among_events",
        ("revocation_match", "check_revocation"),
    ),
    DelayPoint(
        "policy",
        "oslo_policy.policy:Enforcer.enforce",
        "validate",
        ("policy", "enforce"),
    ),
    DelayPoint(
        "catalog",
        "keystone.catalog.backends.sql:Catalog.get_v3_catalog",
        "issue_new_catalog",
        ("other", "catalog"),
    ),
    DelayPoint(
        "rendering", "json:dumps", "validate", ("render", "other"), "dispatch_request"
    ),
    DelayPoint(
        "notification",
        "keystone.notifications:_get_notifier",
        "fail",
        ("notification", "audit"),
    ),
    DelayPoint(
        "timestamps",
        "iso8601:parse_date",
        "validate",
        ("timestamps", "check_revocation"),
        "build_token_values",
    ),
    DelayPoint(
        "request schema", "jsonschema.validators:extend", "issue", ("schema", "other")
    ),
    DelayPoint(
        "web framework",
        "werkzeug.routing.map:MapAdapter.match",
        "issue",
        ("wsgi", "other"),
    ),
    DelayPoint(
        "no seam at all",
        "keystone.auth.core:UserMFARulesValidator.check_auth_methods_against_rules",
        "issue",
        ("other", "authenticate"),
    ),
)

Armed = Callable[[], Any]


def _unarmed() -> None:
    """Make this call without a delay."""


def call_of(keystone: Keystone, name: str) -> Callable[..., Reply]:
    """Return a call that arms the delay when its inputs are ready."""
    log_in = password("admin")

    def validate_new(arm: Armed = _unarmed) -> Reply:
        token = keystone.issue(log_in).token
        arm()
        return keystone.validate(keystone.admin, token)

    def validate_among_events(arm: Armed = _unarmed) -> Reply:
        from keystone.common.provider_api import ProviderAPIs

        token = keystone.issue(log_in).token
        ProviderAPIs.revoke_api.revoke_by_audit_chain_id("another chain of tokens")
        arm()
        return keystone.validate(keystone.admin, token)

    def issue_new_catalog(arm: Armed = _unarmed) -> Reply:
        from keystone.catalog.core import COMPUTED_CATALOG_REGION

        COMPUTED_CATALOG_REGION.invalidate()
        arm()
        return keystone.issue(log_in)

    def simply(call: Callable[[], Reply]) -> Callable[..., Reply]:
        def armed(arm: Armed = _unarmed) -> Reply:
            arm()
            return call()

        return armed

    return {
        "issue": simply(lambda: keystone.issue(log_in)),
        "validate": simply(lambda: keystone.validate(keystone.admin)),
        "fail": simply(lambda: keystone.issue(password("admin", "wrong"))),
        "validate_new": validate_new,
        "validate_among_events": validate_among_events,
        "issue_new_catalog": issue_new_catalog,
    }[name]


def drive(keystone: Keystone, places: tuple[DelayPoint, ...]) -> list[DelayEffect]:
    """Measure one delay point after the other."""
    return [measure(place, call_of(keystone, place.call)) for place in places]


@pytest.fixture(scope="module")
def rows(
    processes, prepared, tmp_path_factory, memcached, delay_effects
) -> list[DelayEffect]:
    site = Site(processes, prepared, tmp_path_factory.mktemp("injected"))
    options = BACKENDS["memcache_pool"].configuration(memcached)
    measured = site.run(drive, PLACES, options=options)
    delay_effects.extend(measured)
    return measured


@pytest.mark.parametrize(
    "number", range(len(PLACES)), ids=[f"{p.name} in {p.call}" for p in PLACES]
)
def test_injected_delay_appears_in_its_cell_only(
    rows: list[DelayEffect], number: int
) -> None:
    row = rows[number]

    bound = TOLERANCE * row.injected
    assert row.injected > 0, "the place was not reached"
    assert row.seen == pytest.approx(row.injected, abs=bound), table([row])
    assert abs(row.other_cells) <= bound, table([row])

"""All kinds of log-ins to Keystone, successful and rejected."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import time
from datetime import datetime
from typing import Any

from keystone_client import DEFAULT_DOMAIN, Keystone, Reply, least_disturbed, password

TOTP_SECRET = base64.b32encode(b"a secret of twenty b").decode()
OPTIONS: dict[str, dict[str, Any]] = {
    "auth": {"methods": "password,token,totp,application_credential,mapped,openid"},
    "security_compliance": {"lockout_failure_attempts": 4},
    "federation": {"remote_id_attribute": "HTTP_OIDC_ISS"},
}
_TOTP_STEP_SECONDS = 30
_TOTP_DIGITS = 6


def totp_code(secret: str) -> str:
    """Return the current code of RFC 6238."""
    counter = struct.pack(">Q", int(time.time()) // _TOTP_STEP_SECONDS)
    digest = hmac.new(base64.b32decode(secret), counter, hashlib.sha1).digest()
    offset = digest[-1] & 0xF
    number = struct.unpack(">I", digest[offset : offset + 4])[0] & 0x7FFFFFFF
    return str(number % 10**_TOTP_DIGITS).zfill(_TOTP_DIGITS)


def make_user(keystone: Keystone, name: str, **more: Any) -> dict[str, Any]:
    """Create a user who has a role on the administrator's project."""
    body = {"name": name, "password": "secret", "domain_id": "default", **more}
    user = keystone.make("/v3/users", "user", body)
    ids = keystone.ids
    path = f"/v3/projects/{ids['project']}/users/{user['id']}/roles/{ids['role']}"
    assert keystone.call("PUT", path, None, keystone.admin).status == 204
    return user


def make_secret(keystone: Keystone, name: str = "script") -> dict[str, Any]:
    """Create an application credential of the administrator."""
    path = f"/v3/users/{keystone.ids['user']}/application_credentials"
    return keystone.make(path, "application_credential", {"name": name})


def make_totp(keystone: Keystone, user: str, secret: str = TOTP_SECRET) -> None:
    body = {"type": "totp", "blob": secret, "user_id": user}
    keystone.make("/v3/credentials", "credential", body)


def make_trust(keystone: Keystone, trustee: str) -> dict[str, Any]:
    """Create a trust of the administrator: its role on its project."""
    ids = keystone.ids
    body = {
        "trustor_user_id": ids["user"],
        "trustee_user_id": trustee,
        "project_id": ids["project"],
        "impersonation": False,
        "roles": [{"id": ids["role"]}],
    }
    return keystone.make("/v3/OS-TRUST/trusts", "trust", body)


def make_federation(keystone: Keystone) -> str:
    """Create an identity provider; return the URL at which its users log in."""
    provider = "/v3/OS-FEDERATION/identity_providers/idp"
    group = keystone.make("/v3/groups", "group", {"name": "guests"})
    rules = [
        {
            "local": [{"user": {"name": "{0}"}, "group": {"id": group["id"]}}],
            "remote": [{"type": "REMOTE_USER"}],
        }
    ]
    for path, name, body in (
        (provider, "identity_provider", {"remote_ids": ["issuer"], "enabled": True}),
        ("/v3/OS-FEDERATION/mappings/rules", "mapping", {"rules": rules}),
        (f"{provider}/protocols/openid", "protocol", {"mapping_id": "rules"}),
    ):
        reply = keystone.call("PUT", path, {name: body}, keystone.admin)
        assert reply.status == 201, reply.content
    return f"{provider}/protocols/openid/auth"


def totp(user: str, code: str) -> dict[str, Any]:
    body = {"user": {"id": user, "passcode": code}}
    return {"identity": {"methods": ["totp"], "totp": body}}


def token(of: str, scope: Any = None) -> dict[str, Any]:
    auth: dict[str, Any] = {"identity": {"methods": ["token"], "token": {"id": of}}}
    return auth if scope is None else {**auth, "scope": scope}


def application_credential(made: dict[str, Any]) -> dict[str, Any]:
    body = {"id": made["id"], "secret": made["secret"]}
    return {
        "identity": {
            "methods": ["application_credential"],
            "application_credential": body,
        }
    }


def accepted(keystone: Keystone) -> dict[str, Reply]:
    """Log in successfully with each method; return the replies by name."""
    admin = keystone.ids["user"]
    friend = make_user(keystone, "friend")
    make_totp(keystone, friend["id"])
    trust = {"OS-TRUST:trust": {"id": make_trust(keystone, friend["id"])["id"]}}
    secret = make_secret(keystone)
    auths = {
        "password": password("admin"),
        "unscoped": password("friend", scope="unscoped"),
        "domain": password("admin", scope={"domain": DEFAULT_DOMAIN}),
        "system": password("admin", scope={"system": {"all": True}}),
        "trust": password("friend", scope=trust),
        "totp": totp(friend["id"], totp_code(TOTP_SECRET)),
        "token": token(keystone.issue(password("admin", scope="unscoped")).token),
        "application_credential": application_credential(secret),
    }
    admin_role = f"/users/{admin}/roles/{keystone.ids['role']}"
    keystone.call("PUT", f"/v3/domains/default{admin_role}", None, keystone.admin)
    replies = issued(keystone, auths)
    assertion = {"REMOTE_USER": "guest", "HTTP_OIDC_ISS": "issuer"}
    path = make_federation(keystone)
    replies["federation"] = least_disturbed(
        lambda: keystone.call("GET", path, environ=assertion)
    )
    return replies


def refused(keystone: Keystone) -> dict[str, Reply]:
    """Send all kinds of rejected log-ins; return the replies by name."""
    make_user(keystone, "wrong")
    make_user(keystone, "locked")
    make_user(keystone, "disabled", enabled=False)
    forgetful = make_user(keystone, "expired")
    rules = {"multi_factor_auth_rules": [["password", "totp"]]}
    make_user(keystone, "half", options={"multi_factor_auth_enabled": True, **rules})
    _expire_password(forgetful["id"])
    for _ in range(4):
        keystone.issue(password("locked", "wrong"))
    auths = {
        "wrong password": password("wrong", "wrong"),
        "nobody": password("nobody"),
        "disabled": password("disabled"),
        "locked": password("locked"),
        "expired": password("expired"),
        "half": password("half"),
        "unknown method": {"identity": {"methods": ["made-up"], "made-up": {}}},
        "totp": totp(keystone.ids["user"], "000000"),
        "token": token("not a token"),
        "application_credential": application_credential({"id": "a", "secret": "b"}),
    }
    return issued(keystone, auths)


def issued(keystone: Keystone, auths: dict[str, Any]) -> dict[str, Reply]:
    return {
        name: least_disturbed(lambda auth=auth: keystone.issue(auth))
        for name, auth in auths.items()
    }


def _expire_password(user: str) -> None:
    """Make a user's password expire, in the database."""
    from keystone.common import sql
    from keystone.common.provider_api import ProviderAPIs
    from keystone.identity.backends.sql_model import User

    with sql.session_for_write() as session:
        for stored in session.get(User, user).local_user.passwords:
            stored.expires_at = datetime(2020, 1, 1)  # noqa: DTZ001 - as Keystone's
    ProviderAPIs.identity_api.get_user.invalidate(ProviderAPIs.identity_api, user)

"""Keystone's own steps, from the outermost middleware to the token."""

from __future__ import annotations

from typing import Any

from keylag_otel.clock import Clock
from keylag_otel.request import measured_app
from keylag_otel.seam import Seam
from keylag_otel.wrappers import noted, timed

#: The names that Keystone ships; anything else is told apart only as "other",
#: since a client may send any text as a method.
AUTH_METHODS = frozenset(
    {
        "application_credential",
        "external",
        "kerberos",
        "mapped",
        "oauth1",
        "openid",
        "password",
        "saml2",
        "token",
        "totp",
        "x509",
    }
)


def note_auth_method(
    clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Note the methods asked for, as one label: ``password+totp``."""
    auth = args[0] if args else kwargs["auth"]
    methods = sorted(
        method if method in AUTH_METHODS else "other"
        for method in auth["identity"]["methods"]
    )
    clock.auth_method = "+".join(dict.fromkeys(methods))


def note_route(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note the rule that Flask matched; never the path, which holds ids."""
    del args, kwargs
    from flask import request  # noqa: PLC0415 - only inside Keystone

    if request.url_rule is not None:
        clock.route = request.url_rule.rule


SEAMS = (
    Seam("keystone.server.flask.core", "setup_app_middleware", (measured_app,)),
    # Where the web framework hands over to Keystone's own code.
    Seam("flask.app", "Flask.dispatch_request", (timed("other"), noted(note_route))),
    Seam(
        "keystone.server.flask.request_processing.middleware.auth_context",
        "AuthContextMiddleware.process_request",
        (timed("other"),),
    ),
    # POST /v3/auth/tokens
    Seam(
        "keystone.api._shared.authentication",
        "authenticate_for_token",
        (timed(operation="authenticate"), noted(note_auth_method)),
    ),
    Seam(
        "keystone.token.provider",
        "Manager.issue_token",
        (timed(operation="issue"),),
    ),
    # GET /v3/auth/tokens, and every request that carries a token
    Seam(
        "keystone.token.provider",
        "Manager.validate_token",
        (timed(operation="validate"),),
    ),
    Seam(
        "keystone.token.provider",
        "Manager.check_revocation",
        (timed(operation="check_revocation"),),
    ),
    Seam(
        "keystone.models.revoke_model",
        "is_revoked",
        (timed("revocation_match", "check_revocation"),),
    ),
    Seam(
        "keystone.models.token_model",
        "TokenModel.roles",
        (timed(operation="roles"),),
    ),
    Seam(
        "keystone.catalog.core",
        "Manager.get_v3_catalog",
        (timed(operation="catalog"),),
    ),
    Seam(
        "keystone.common.rbac_enforcer.enforcer",
        "RBACEnforcer.enforce_call",
        (timed(operation="enforce"),),
    ),
    Seam(
        "keystone.common.rbac_enforcer.enforcer",
        "RBACEnforcer._enforce",
        (timed("policy"),),
    ),
    Seam(
        "keystone.common.render_token",
        "render_token_response_from_model",
        (timed("render", "render"),),
    ),
    # Where Keystone computes instead of asking somebody
    Seam(
        "keystone.common.password_hashing",
        "check_password",
        (timed("password_hash"),),
    ),
    Seam(
        "keystone.common.password_hashing",
        "hash_password",
        (timed("password_hash"),),
    ),
    Seam(
        "keystone.token.token_formatters",
        "TokenFormatter.create_token",
        (timed("token_crypto"),),
    ),
    Seam(
        "keystone.token.token_formatters",
        "TokenFormatter.validate_token",
        (timed("token_crypto"),),
    ),
    Seam(
        "keystone.common.fernet_utils",
        "FernetUtils.load_keys",
        (timed("token_crypto"),),
    ),
    Seam(
        "keystone.notifications",
        "_send_audit_notification",
        (timed("notification", "audit"),),
    ),
    Seam(
        "keystone.notifications",
        "_send_notification",
        (timed("notification", "audit"),),
    ),
)

"""Keystone's own steps, from the outermost middleware to the token."""

from __future__ import annotations

from typing import Any

from keylag_otel.authentication import (
    note_check,
    note_failure,
    note_hash,
    note_method,
)
from keylag_otel.callers import note_caller
from keylag_otel.clock import Clock
from keylag_otel.request import measured_app
from keylag_otel.revocation import note_fetched, note_written
from keylag_otel.seam import Seam
from keylag_otel.wrappers import noted, noted_result, timed


def note_route(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note the rule that Flask matched; never the path, which holds ids."""
    del args, kwargs
    if clock.route is None:
        # Where Werkzeug leaves a request that it has read.
        rule = clock.environ["werkzeug.request"].url_rule
        clock.route = None if rule is None else rule.rule


SEAMS = (
    Seam(
        "keystone.server.flask.core",
        "setup_app_middleware",
        (measured_app,),
        expects=("app",),
    ),
    # Where the web framework hands over to Keystone's own code.
    Seam("flask.app", "Flask.dispatch_request", (timed("other", before=note_route),)),
    Seam(
        "keystone.server.flask.request_processing.middleware.auth_context",
        "AuthContextMiddleware.process_request",
        (timed("other"),),
    ),
    Seam(
        "keystonemiddleware.auth_token",
        "BaseAuthProtocol.process_request",
        (timed("wsgi"),),
        optional=True,
    ),
    Seam(
        "keystone.server.flask.request_processing.middleware.auth_context",
        "AuthContextMiddleware.fetch_token",
        (timed("other"),),
    ),
    Seam("flask.app", "Flask.make_response", (timed("wsgi"),), optional=True),
    Seam(
        "oslo_context.context",
        "RequestContext.from_environ",
        (timed("wsgi"),),
        optional=True,
    ),
    # GET /v3/auth/tokens
    Seam("keystone.api.auth", "AuthTokenResource.get", (noted(note_caller),)),
    # POST /v3/auth/tokens
    Seam(
        "keystone.api._shared.authentication",
        "authenticate_for_token",
        (timed(operation="authenticate", before=note_method, failed=note_failure),),
        expects=("auth",),
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
        (timed("other", "validate"),),
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
        "keystone.revoke.backends.sql",
        "Revoke.list_events",
        (noted_result(note_fetched),),
    ),
    Seam(
        "keystone.revoke.core",
        "Manager.revoke",
        (noted(note_written),),
        expects=("self", "event"),
    ),
    Seam(
        "keystone.models.token_model",
        "TokenModel.roles",
        (timed(operation="roles"),),
        kind="property",
    ),
    Seam(
        "keystone.catalog.core",
        "Manager.get_v3_catalog",
        (timed(operation="catalog"),),
    ),
    Seam(
        "keystone.common.rbac_enforcer.enforcer",
        "RBACEnforcer.enforce_call",
        (timed("policy", "enforce"),),
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
        (timed("password_hash", before=note_check),),
        expects=("password", "hashed"),
    ),
    Seam(
        "keystone.common.password_hashing",
        "hash_password",
        (timed("password_hash", after=note_hash),),
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
        "keystone.token.providers.jws.core",
        "JWSFormatter.create_token",
        (timed("token_crypto"),),
        optional=True,
    ),
    Seam(
        "keystone.token.providers.jws.core",
        "JWSFormatter.validate_token",
        (timed("token_crypto"),),
        optional=True,
    ),
    Seam("oslo_serialization.jsonutils", "dumps", (timed("render"),)),
    Seam("oslo_utils.timeutils", "parse_isotime", (timed("timestamps"),)),
    Seam("keystone.common.utils", "isotime", (timed("timestamps"),), optional=True),
    *(
        Seam(
            "keystone.common.validation.validators",
            f"SchemaValidator.{name}",
            (timed("schema"),),
            optional=True,
        )
        for name in ("__init__", "validate")
    ),
    Seam(
        "keystone.auth.core",
        "AuthInfo._validate_and_normalize_scope_data",
        (timed(operation="scope"),),
        optional=True,
    ),
    *(
        Seam(
            "keystone.identity.backends.ldap.common",
            f"KeystoneLDAPHandler.{name}",
            (timed("ldap"),),
            optional=True,
        )
        for name in (
            "connect",
            "simple_bind_s",
            "unbind_s",
            "add_s",
            "search_s",
            "search_ext",
            "result3",
            "modify_s",
        )
    ),
    *(
        Seam("keystone.notifications", name, (timed("notification", "audit"),))
        for name in ("_send_audit_notification", "_send_notification")
    ),
    # Who did it is worked out even when nobody is to be told.
    *(
        Seam(
            "keystone.notifications",
            name,
            (timed("notification", "audit"),),
            optional=True,
        )
        for name in ("build_audit_initiator", "_add_username_to_initiator")
    ),
)

"""Seams of Keystone, from the outermost middleware to the token."""

from __future__ import annotations

from typing import Any

from keylag_otel.authentication import (
    count_auth_failure,
    count_password_check,
    count_password_hash,
    record_auth_method,
)
from keylag_otel.callers import count_validation
from keylag_otel.request import wrap_app_setup
from keylag_otel.request_timer import RequestTimer
from keylag_otel.revocation import count_fetched_events, count_written_event
from keylag_otel.seam import Seam
from keylag_otel.wrappers import after_call, before_call, timed


def record_route(
    timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Record the rule that Flask matched; never the path, which contains ids."""
    del args, kwargs
    if timer.route is None:
        # Werkzeug stores the parsed request here.
        rule = timer.environ["werkzeug.request"].url_rule
        timer.route = None if rule is None else rule.rule


SEAMS = (
    Seam(
        "keystone.server.flask.core",
        "setup_app_middleware",
        (wrap_app_setup,),
        expects=("app",),
    ),
    # The web framework calls Keystone's own code.
    Seam("flask.app", "Flask.dispatch_request", (timed("other", before=record_route),)),
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
    Seam(
        "keystone.api.auth", "AuthTokenResource.get", (before_call(count_validation),)
    ),
    # POST /v3/auth/tokens
    Seam(
        "keystone.api._shared.authentication",
        "authenticate_for_token",
        (
            timed(
                operation="authenticate",
                before=record_auth_method,
                on_error=count_auth_failure,
            ),
        ),
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
        (after_call(count_fetched_events),),
    ),
    Seam(
        "keystone.revoke.core",
        "Manager.revoke",
        (before_call(count_written_event),),
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
    # Computations of Keystone itself
    Seam(
        "keystone.common.password_hashing",
        "check_password",
        (timed("password_hash", before=count_password_check),),
        expects=("password", "hashed"),
    ),
    Seam(
        "keystone.common.password_hashing",
        "hash_password",
        (timed("password_hash", after=count_password_hash),),
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
    # Keystone collects the initiator even without a notifier.
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

"""A small service behind auth_token that returns the caller's project and roles.

It does almost no work itself, so a load on it measures authentication. Its options come
from OS_KEYSTONE_AUTHTOKEN__* variables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from keylag_otel import AuthTokenInstrumentor

AuthTokenInstrumentor().instrument()

from keystonemiddleware.auth_token import AuthProtocol  # noqa: E402 - instrumented
from oslo_config import cfg  # noqa: E402

#: Name in auth_token's User-Agent.
NAME = "keylag-service"
HEALTH = "/healthcheck"

cfg.CONF([], project=NAME, default_config_files=[], default_config_dirs=[])


def show_identity(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Return the project and roles that auth_token has validated."""
    identity = {
        "project": environ.get("HTTP_X_PROJECT_NAME"),
        "roles": environ.get("HTTP_X_ROLES", "").split(","),
    }
    body = json.dumps(identity).encode()
    length = ("Content-Length", str(len(body)))
    start_response("200 OK", [("Content-Type", "application/json"), length])
    return [body]


protected = AuthProtocol(show_identity, {})


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Answer health checks directly; pass all other requests to auth_token."""
    if environ["PATH_INFO"] == HEALTH:
        start_response("204 No Content", [])
        return []
    return protected(environ, start_response)

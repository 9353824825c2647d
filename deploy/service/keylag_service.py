"""A small service behind auth_token: it tells callers who Keystone says they are.

What it does has no weight of its own, so that a load on it shows what
authentication costs.  Its options come from OS_KEYSTONE_AUTHTOKEN__* variables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from keylag_otel import AuthTokenInstrumentor

AuthTokenInstrumentor().instrument()

from keystonemiddleware.auth_token import AuthProtocol  # noqa: E402 - instrumented
from oslo_config import cfg  # noqa: E402

#: Under which auth_token names itself to Keystone.
NAME = "keylag-service"
HEALTH = "/healthcheck"

cfg.CONF([], project=NAME, default_config_files=[], default_config_dirs=[])


def answer(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Tell the project and the roles that auth_token has found out."""
    known = {
        "project": environ.get("HTTP_X_PROJECT_NAME"),
        "roles": environ.get("HTTP_X_ROLES", "").split(","),
    }
    body = json.dumps(known).encode()
    length = ("Content-Length", str(len(body)))
    start_response("200 OK", [("Content-Type", "application/json"), length])
    return [body]


protected = AuthProtocol(answer, {})


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Let all but the question whether it lives pass auth_token."""
    if environ["PATH_INFO"] == HEALTH:
        start_response("204 No Content", [])
        return []
    return protected(environ, start_response)

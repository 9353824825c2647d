"""A service behind auth_token with the caller's token in its cache.

So it validates offline, as in all requests with a token except the first.
"""

import json
import os
from collections.abc import Callable
from typing import Any

from instrumentation import Application

CACHE = "KEYLAG_BENCH_TOKEN_CACHE"


def service(token: str, validated: bytes) -> Application:
    """Return the service; `validated` is Keystone's response for the token."""
    from keystonemiddleware.auth_token import AuthProtocol

    options = {"auth_type": "none", "memcached_servers": os.environ[CACHE]}
    # Own options, because the global ones of oslo.config are Keystone's.
    protected = AuthProtocol(_answer, {**options, "oslo_config_project": "service"})
    cache = protected._token_cache  # noqa: SLF001 - as after a validation
    cache.initialize({})
    cache.set(token, json.loads(validated))
    application: Application = protected
    return application


def _answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    del environ
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]

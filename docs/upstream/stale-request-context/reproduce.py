"""Sends two requests on one thread, and looks at what the second one starts with."""

from typing import Any

import webob
from keystone.conf import CONF, configure
from keystone.server.flask.request_processing.middleware import auth_context
from oslo_context import context


class Middleware(auth_context.AuthContextMiddleware):
    """Notes the context in which a token is validated."""

    seen = None

    def fetch_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        """Return no token."""
        del token, kwargs
        Middleware.seen = context.get_current()
        return {}


def find_fault() -> str:
    """Return what a request has from the one before it."""
    configure()
    CONF([], project="keystone", default_config_files=[], default_config_dirs=[])
    application = Middleware(webob.Response())
    webob.Request.blank("/v3").get_response(application)
    first = context.get_current()
    request = webob.Request.blank("/v3", headers={"X-Auth-Token": "a token"})
    request.get_response(application)
    if first is None or Middleware.seen is None:
        return "no token was validated"
    if Middleware.seen is not first:
        return ""
    return "the token of a request is validated with the context of the one before it"

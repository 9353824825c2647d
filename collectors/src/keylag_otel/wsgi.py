"""Keystone's application, instrumented: point the WSGI server here.

It takes the place of ``keystone.wsgi.api:application``.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from keylag_otel import KeystoneInstrumentor, telemetry
from keylag_otel.guard import attempt

attempt("watch this Keystone", KeystoneInstrumentor().instrument)

# Keystone reads the process's arguments while it is imported, and these are
# the WSGI server's, which it does not know.
_argv, sys.argv = sys.argv, sys.argv[:1]
try:
    from keystone.server.wsgi import initialize_public_application

    application = initialize_public_application()
finally:
    sys.argv = _argv

# Outside uWSGI, and without its master, there is nothing to be told of forks:
# the first request does.
with suppress(Exception):
    from uwsgidecorators import postfork

    postfork(telemetry.start_once_per_process)

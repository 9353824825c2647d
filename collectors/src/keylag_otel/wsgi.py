"""The instrumented application of Keystone, for the configuration of a WSGI server.

It replaces ``keystone.wsgi.api:application``.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from keylag_otel import KeystoneInstrumentor, telemetry
from keylag_otel.guard import attempt

attempt("instrument Keystone", KeystoneInstrumentor().instrument)

# Keystone parses the arguments of the process on import; hide those of the server.
_argv, sys.argv = sys.argv, sys.argv[:1]
try:
    from keystone.server.wsgi import initialize_public_application

    application = initialize_public_application()
finally:
    sys.argv = _argv

# Elsewhere, and in uWSGI without a master, the first request starts the exports.
with suppress(Exception):
    from uwsgidecorators import postfork

    postfork(telemetry.start_once_per_process)

"""What the fork server imports once, so that no test pays for it again.

The instrumentor comes first, as it must in a WSGI server.
"""

from __future__ import annotations

import sys

from keylag_otel import KeystoneInstrumentor

KeystoneInstrumentor().instrument()

# Keystone reads the process's arguments while it is imported.
sys.argv = sys.argv[:1]

import keystone.api  # noqa: E402
import keystone.cmd.cli  # noqa: E402
import keystone.server.wsgi  # noqa: E402, F401

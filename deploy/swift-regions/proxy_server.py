"""Swift's proxy server with Keylag in its auth_token."""

import sys

from keylag_otel import AuthTokenInstrumentor

AuthTokenInstrumentor().instrument()

from swift.proxy.server import main  # noqa: E402 - instrumented

sys.exit(main())

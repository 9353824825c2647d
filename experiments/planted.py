"""Keystone behind a delay of PLANTED_MS milliseconds, for planted.toml."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from keylag_otel.wsgi import application as keystone

DELAY_SECONDS = float(os.environ["PLANTED_MS"]) / 1000


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Wait, then let Keystone answer."""
    time.sleep(DELAY_SECONDS)
    return keystone(environ, start_response)

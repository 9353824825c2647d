"""Keystone with a delay of PLANTED_MS milliseconds, for the plans planted*.toml."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from keylag_otel.wsgi import application as keystone

DELAY_SECONDS = float(os.environ["PLANTED_MS"]) / 1000


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Delay the request by a busy loop, then call Keystone.

    A sleep would yield the processor and take longer than PLANTED_MS.
    """
    end = time.perf_counter() + DELAY_SECONDS
    while time.perf_counter() < end:
        pass
    return keystone(environ, start_response)

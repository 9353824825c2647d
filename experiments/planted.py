"""Keystone with PLANTED_MS milliseconds of work more, for planted.toml."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from keylag_otel.wsgi import application as keystone

DELAY_SECONDS = float(os.environ["PLANTED_MS"]) / 1000


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Work in vain, then let Keystone answer.

    A sleep would leave the processor to others, and take longer than it says.
    """
    end = time.perf_counter() + DELAY_SECONDS
    while time.perf_counter() < end:
        pass
    return keystone(environ, start_response)

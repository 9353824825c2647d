"""What may fail without anybody else noticing."""

from __future__ import annotations

import logging
from typing import Any, Callable

LOG = logging.getLogger("keylag_otel")


def attempt(what: str, call: Callable[..., Any], *args: Any) -> None:
    """Call something; if it raises, log that this could not be done."""
    try:
        call(*args)
    except Exception:
        LOG.warning("keylag could not %s; the service goes on", what, exc_info=True)

"""Calls whose failure must not affect the host."""

from __future__ import annotations

import logging
from typing import Any, Callable

LOG = logging.getLogger("keylag_otel")


def attempt(what: str, call: Callable[..., Any], *args: Any) -> None:
    """Call a function; log "could not `what`" if it raises."""
    try:
        call(*args)
    except Exception:
        LOG.warning(
            "keylag could not %s; the service continues without it", what, exc_info=True
        )

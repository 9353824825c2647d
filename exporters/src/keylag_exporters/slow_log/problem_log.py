"""Logs a lasting problem once when it begins and once when it ends."""

from __future__ import annotations

import logging

LOG = logging.getLogger("keylag_exporters.slow_log")


class ProblemLog:
    """The current problem as text, empty if there is none."""

    def __init__(self, end_message: str) -> None:
        self.current = ""
        self._end_message = end_message

    def update(self, text: str, exc_info: BaseException | None = None) -> None:
        """Set the current problem; log it if it changed, and its end if empty."""
        if text and text != self.current:
            LOG.warning("%s; retrying", text, exc_info=exc_info)
        elif self.current and not text:
            LOG.info("%s", self._end_message)
        self.current = text

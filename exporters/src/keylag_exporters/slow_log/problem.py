"""A problem that goes on: logged when it begins, and when it is over."""

from __future__ import annotations

import logging

LOG = logging.getLogger("keylag_exporters.slow_log")


class Problem:
    """What is wrong now, as `text`; empty while nothing is."""

    def __init__(self, over: str) -> None:
        self.text = ""
        self._over = over

    def note(self, text: str, exc_info: BaseException | None = None) -> None:
        """Log a problem unless it was logged before; empty is the end of it."""
        if text and text != self.text:
            LOG.warning("%s; trying again", text, exc_info=exc_info)
        elif self.text and not text:
            LOG.info("%s", self._over)
        self.text = text

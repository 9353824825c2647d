"""Log rate limit for OpenTelemetry's loggers.

With a full queue, each worker would log a warning per request into Keystone's log.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import Callable

#: The interval in which each place in the code logs at most once.
INTERVAL_SECONDS = 600

#: The added filters with their loggers.
_added: list[tuple[logging.Logger, logging.Filter]] = []


class RateLimitFilter(logging.Filter):
    """Passes one record per interval and place in the code; counts the suppressed."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._last_logged: dict[tuple[str, int], float] = {}
        self._suppressed: dict[tuple[str, int], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log the record; append the number of suppressed ones."""
        # By place, since a text may differ each time and would fill the memory.
        place = (record.pathname, record.lineno)
        moment = self._clock()
        if moment - self._last_logged.get(place, -INTERVAL_SECONDS) < INTERVAL_SECONDS:
            self._suppressed[place] = self._suppressed.get(place, 0) + 1
            return False
        self._last_logged[place] = moment
        suppressed = self._suppressed.pop(place, 0)
        if suppressed:
            record.msg = f"{record.msg} ({suppressed} similar messages suppressed)"
        return True


def add_log_filter(kind: type[logging.Filter], *classes: type) -> None:
    """Add a filter to the loggers of the OpenTelemetry modules of these classes."""
    modules = {
        base.__module__
        for each in classes
        for base in each.__mro__
        if base.__module__.startswith("opentelemetry.")
    }
    for name in modules:
        logger = logging.getLogger(name)
        if not any(isinstance(present, kind) for present in logger.filters):
            filter_ = kind()
            logger.addFilter(filter_)
            _added.append((logger, filter_))


def remove_log_filters() -> None:
    """Remove all added filters."""
    while _added:
        logger, filter_ = _added.pop()
        logger.removeFilter(filter_)

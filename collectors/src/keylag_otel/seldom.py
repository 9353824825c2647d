"""What OpenTelemetry's own loggers may say in Keystone's log: nothing again and again.

A queue that is full says so at each request, in every worker; Keystone's log is not
for that.  The first time is what matters.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import Callable

#: How long a message that was said is not said again.
SECONDS = 600

#: The filters that were added, and to which loggers.
_added: list[tuple[logging.Logger, logging.Filter]] = []


class Seldom(logging.Filter):
    """Lets each place that logs speak once in a while, with how often it wanted to."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[tuple[str, int], float] = {}
        self._left_out: dict[tuple[str, int], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether this record is said."""
        # By place: a text may hold what changes each time, and would pile up here.
        place = (record.pathname, record.lineno)
        moment = self._clock()
        if moment - self._said.get(place, -SECONDS) < SECONDS:
            self._left_out[place] = self._left_out.get(place, 0) + 1
            return False
        self._said[place] = moment
        left_out = self._left_out.pop(place, 0)
        if left_out:
            record.msg = f"{record.msg} ({left_out} more like it were left out)"
        return True


def hear_less(kind: type[logging.Filter], *classes: type) -> None:
    """Filter what the modules say that these classes of OpenTelemetry come from."""
    modules = {
        base.__module__
        for each in classes
        for base in each.__mro__
        if base.__module__.startswith("opentelemetry.")
    }
    for name in modules:
        logger = logging.getLogger(name)
        if not any(isinstance(present, kind) for present in logger.filters):
            made = kind()
            logger.addFilter(made)
            _added.append((logger, made))


def hear_all() -> None:
    """Let the loggers speak as they want to."""
    while _added:
        logger, made = _added.pop()
        logger.removeFilter(made)

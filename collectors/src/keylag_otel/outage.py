"""Exports that fail: told once, in Keylag's own words, and once when they work again.

The SDK says so at each try, as an error and in the words of its own parts.  What it
says of other exporters in the process is left alone.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Any

from keylag_otel.environment import without_user_info

LOG = logging.getLogger("keylag_otel")

_FAILS = (
    "keylag cannot export %s to %s: %s. Requests are answered as ever. Start an "
    "OpenTelemetry Collector there, or name where one is in "
    "OTEL_EXPORTER_OTLP_ENDPOINT, or set OTEL_%s_EXPORTER=none. Keylag says no more "
    "of it until it works again."
)

_exporting: ContextVar[Exports | None] = ContextVar("keylag_exports", default=None)


class Exports:
    """Takes the place of an exporter's `export`; a failure is no error to anybody."""

    def __init__(self, exporter: Any, signal: str) -> None:
        self._export = exporter.export
        self._signal = signal
        name = type(exporter).__name__
        self._address = without_user_info(str(getattr(exporter, "_endpoint", name)))
        self._failing = False
        self.reason = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Export; return what the exporter returns, None if it raises."""
        token = _exporting.set(self)
        self.reason = ""
        result = None
        try:
            result = self._export(*args, **kwargs)
            failed = getattr(result, "name", "") == "FAILURE"
        except Exception as error:
            self.reason, failed = cause_of(error), True
        finally:
            _exporting.reset(token)
        self._note(failed=failed)
        return result

    def _note(self, *, failed: bool) -> None:
        if failed and not self._failing:
            what = (self._signal, self._address, self.reason or "no reason given")
            LOG.warning(_FAILS, *what, self._signal.upper())
        elif self._failing and not failed:
            LOG.info("keylag exports %s to %s again", self._signal, self._address)
        self._failing = failed


class NotOurs(logging.Filter):
    """Leaves out what is said during an export of ours; its reason is kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether somebody else is exporting."""
        exports = _exporting.get()
        if exports is None:
            return True
        # The first says why; what follows says how often it was tried.
        exports.reason = exports.reason or _reason_in(record)
        return False


def _reason_in(record: logging.LogRecord) -> str:
    args = record.args if isinstance(record.args, tuple) else ()
    errors = (each for each in args if isinstance(each, BaseException))
    return next(map(cause_of, errors), None) or record.getMessage().rstrip(".")


def cause_of(error: BaseException) -> str:
    """Return in words what is behind an exception, without what it passed through."""
    while (behind := error.__cause__ or error.__context__) is not None:
        error = behind
    words = getattr(error, "strerror", None) or str(error)
    return words or type(error).__name__

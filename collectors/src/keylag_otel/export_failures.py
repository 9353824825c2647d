"""Log failing exports once, and once more when they work again.

The SDK logs an error at each attempt.  A filter drops those of Keylag's exporters and
keeps those of other exporters in the process.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Any

from keylag_otel.environment import strip_credentials

LOG = logging.getLogger("keylag_otel")

_FAILURE_MESSAGE = (
    "keylag cannot export %s to %s: %s. Requests are not affected. Start an "
    "OpenTelemetry Collector there, set OTEL_EXPORTER_OTLP_ENDPOINT to its address, or "
    "set OTEL_%s_EXPORTER=none. The next message comes when exports work again."
)

_current_export: ContextVar[MonitoredExport | None] = ContextVar(
    "keylag_current_export", default=None
)


class MonitoredExport:
    """Replaces an exporter's `export`; logs the first failure and the recovery."""

    def __init__(self, exporter: Any, signal: str) -> None:
        self._export = exporter.export
        self._signal = signal
        name = type(exporter).__name__
        self._address = strip_credentials(str(getattr(exporter, "_endpoint", name)))
        self._failing = False
        self.reason = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Export; return the exporter's result, or None if it raises."""
        token = _current_export.set(self)
        self.reason = ""
        result = None
        try:
            result = self._export(*args, **kwargs)
            failed = getattr(result, "name", "") == "FAILURE"
        except Exception as error:
            self.reason, failed = root_cause(error), True
        finally:
            _current_export.reset(token)
        self._log_transition(failed=failed)
        return result

    def _log_transition(self, *, failed: bool) -> None:
        if failed and not self._failing:
            what = (self._signal, self._address, self.reason or "no reason given")
            LOG.warning(_FAILURE_MESSAGE, *what, self._signal.upper())
        elif self._failing and not failed:
            LOG.info("keylag exports %s to %s again", self._signal, self._address)
        self._failing = failed


class OwnExportFilter(logging.Filter):
    """Drops log records of Keylag's own exports and keeps the reason of a failure."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record belongs to another exporter."""
        export = _current_export.get()
        if export is None:
            return True
        # The first record has the reason, later ones count the retries.
        export.reason = export.reason or _reason_from(record)
        return False


def _reason_from(record: logging.LogRecord) -> str:
    args = record.args if isinstance(record.args, tuple) else ()
    errors = (each for each in args if isinstance(each, BaseException))
    return next(map(root_cause, errors), None) or record.getMessage().rstrip(".")


def root_cause(error: BaseException) -> str:
    """Return the message of the innermost cause of an exception."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    message = getattr(error, "strerror", None) or str(error)
    return message or type(error).__name__

"""Metrics and spans of the requests of auth_token to Keystone, including retries."""

from __future__ import annotations

from functools import wraps
from time import perf_counter_ns as now
from typing import Any

from opentelemetry.trace import INVALID_SPAN, Span

from keylag_otel.auth_token import instruments, spans
from keylag_otel.auth_token.recording import record
from keylag_otel.instruments import ERROR_TYPE, STATUS
from keylag_otel.model import NS_PER_SECOND, PHASE_MASK, PHASES
from keylag_otel.request_timer import current_timer
from keylag_otel.wrappers import Call, count_fault

_KEYSTONE = PHASES.index("keystone")
_KINDS = {"GET": "validate", "POST": "authenticate"}


def call_kind(method: str, url: str) -> str:
    """Return the purpose of a request to Keystone.

    ``validate`` a token, ``authenticate`` the service, ``discover`` the endpoints and
    versions of Keystone, or ``other``.
    """
    path = url.partition("?")[0]
    return _KINDS.get(method, "other") if path.endswith("/tokens") else "discover"


def error_kind(error: BaseException) -> str:
    """Return the kind of an error: ``timeout``, ``connection`` or ``other``."""
    names = {kind.__name__ for kind in type(error).__mro__}
    kinds = {"Timeout": "timeout", "ConnectionError": "connection"}
    return next((kinds[name] for name in kinds if name in names), "other")


def wrap_request(request: Call) -> Call:
    """Wrap ``Session.request`` to record requests in phase keystone."""

    @wraps(request)
    def wrapper(self: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        timer = current_timer()
        if timer is None or timer.current_cell & PHASE_MASK != _KEYSTONE:
            return request(self, method, url, *args, **kwargs)
        call = _OutgoingCall(method, url)
        kwargs = call.add_trace_headers(kwargs)
        try:
            response = request(self, method, url, *args, **kwargs)
        except BaseException as error:  # also a greenlet's Timeout
            call.finish(ERROR_TYPE, error_kind(error))
            raise
        call.finish(STATUS, response.status_code)
        return response

    return wrapper


class _OutgoingCall:
    """A request to Keystone; none of its methods raises."""

    def __init__(self, method: str, url: str) -> None:
        self._method = method
        self._url = url
        self._attributes: dict[str, Any] = {}
        self._span: Span = INVALID_SPAN
        self._started_at = now()

    def add_trace_headers(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Start a span; return `kwargs` with the trace context in the headers."""
        try:
            self._attributes[instruments.CALL] = call_kind(self._method, self._url)
            self._span, kwargs = spans.start_call_span(self._method, kwargs)
        except Exception:
            count_fault(wrap_request)
        return kwargs

    def finish(self, name: str, value: Any) -> None:
        """Record the duration with one more attribute, and end the span."""
        try:
            self._attributes[name] = value
            record("call", (now() - self._started_at) / NS_PER_SECOND, self._attributes)
            self._span.set_attributes(self._attributes)
            self._span.end()
        except Exception:
            count_fault(wrap_request)

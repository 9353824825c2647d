"""The requests that auth_token sends to Keystone, each try by itself."""

from __future__ import annotations

from functools import wraps
from time import perf_counter_ns as now
from typing import Any

from opentelemetry.trace import INVALID_SPAN, Span

from keylag_otel.auth_token import instruments, spans
from keylag_otel.auth_token.recording import record
from keylag_otel.clock import current
from keylag_otel.instruments import ERROR_TYPE, STATUS
from keylag_otel.model import PHASE_MASK, PHASES
from keylag_otel.wrappers import Call, fault

_KEYSTONE = PHASES.index("keystone")
_NS_PER_SECOND = 1e9
_KINDS = {"GET": "validate", "POST": "authenticate"}


def kind_of(method: str, url: str) -> str:
    """Return what a request to Keystone is for.

    ``validate`` a token, ``authenticate`` the service itself, or ``discover``
    where and which version Keystone is.
    """
    path = url.partition("?")[0]
    return _KINDS.get(method, "other") if path.endswith("/tokens") else "discover"


def error_of(error: BaseException) -> str:
    """Return ``timeout``, ``connection`` or ``other``."""
    names = {kind.__name__ for kind in type(error).__mro__}
    kinds = {"Timeout": "timeout", "ConnectionError": "connection"}
    return next((kinds[name] for name in kinds if name in names), "other")


def called(request: Call) -> Call:
    """Record each request that is sent while a service waits for Keystone."""

    @wraps(request)
    def watched(self: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        clock = current()
        if clock is None or clock.at & PHASE_MASK != _KEYSTONE:
            return request(self, method, url, *args, **kwargs)
        call = _Sent(method, url)
        kwargs = call.traced(kwargs)
        try:
            answer = request(self, method, url, *args, **kwargs)
        except Exception as error:
            call.ended(ERROR_TYPE, error_of(error))
            raise
        call.ended(STATUS, answer.status_code)
        return answer

    return watched


class _Sent:
    """One request on its way; none of its methods raises."""

    def __init__(self, method: str, url: str) -> None:
        self._method = method
        self._url = url
        self._attributes: dict[str, Any] = {}
        self._span: Span = INVALID_SPAN
        self._began = now()

    def traced(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments, with the trace in the headers if there is one."""
        try:
            self._attributes[instruments.CALL] = kind_of(self._method, self._url)
            self._span, kwargs = spans.start_call(self._method, kwargs)
        except Exception:
            fault(called)
        return kwargs

    def ended(self, name: str, value: Any) -> None:
        """Record how long it took, and what came of it."""
        try:
            self._attributes[name] = value
            record("call", (now() - self._began) / _NS_PER_SECOND, self._attributes)
            self._span.set_attributes(self._attributes)
            self._span.end()
        except Exception:
            fault(called)

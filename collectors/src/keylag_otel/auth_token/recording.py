"""The aggregator and the histograms of a service's requests.

A request of a service passes some ten seams, so it can afford to record histograms
with the SDK directly.
"""

from __future__ import annotations

from functools import wraps
from time import perf_counter_ns as now
from typing import Any, Callable

from opentelemetry.metrics import Meter

from keylag_otel.auth_token import configuration, instruments
from keylag_otel.instrument_factory import (
    create_gauges,
    create_histogram,
    create_request_counters,
)
from keylag_otel.model import NS_PER_SECOND
from keylag_otel.request_aggregator import RequestAggregator
from keylag_otel.wrappers import Call, WrapperFactory, count_fault

#: Aggregates of requests through auth_token, separate from those of Keystone.
SERVICE_AGGREGATOR = RequestAggregator()

_recorders: dict[str, Callable[[float, dict[str, Any]], None]] = {}


def create_instruments(meter: Meter) -> None:
    """Create the instruments of a service."""
    SERVICE_AGGREGATOR.reset(create_histogram(meter, instruments.REQUEST_DURATION))
    create_request_counters(
        meter, SERVICE_AGGREGATOR, instruments.PHASE_TIME, instruments.COUNTERS
    )
    create_gauges(meter, instruments.GAUGES, configuration.CALLBACKS)
    for name, instrument in instruments.HISTOGRAMS.items():
        _recorders[name] = create_histogram(
            meter, instrument, instruments.BUCKETS[name]
        )


def record(name: str, seconds: float, attributes: dict[str, Any]) -> None:
    """Record seconds in a histogram; `name` is a key of ``instruments.HISTOGRAMS``."""
    recorder = _recorders.get(name)
    if recorder is not None:
        recorder(seconds, attributes)


def record_duration(name: str, attributes: dict[str, Any]) -> WrapperFactory:
    """Return a wrapper factory that records durations in a histogram."""

    def factory(call: Call) -> Call:
        @wraps(call)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            started_at = now()
            try:
                return call(*args, **kwargs)
            finally:
                try:
                    record(name, (now() - started_at) / NS_PER_SECOND, attributes)
                except Exception:
                    count_fault(call)

        return wrapper

    return factory

"""Where the numbers of a service's requests go, in this process.

A service's request passes ten seams, not hundreds, so what is not summed up in
the ledger is recorded at once.
"""

from __future__ import annotations

from functools import wraps
from time import perf_counter_ns as now
from typing import Any, Callable

from opentelemetry.metrics import Meter

from keylag_otel.auth_token import configuration, instruments
from keylag_otel.ledger import Ledger
from keylag_otel.metering import histogram, observe_ledger, observe_readings
from keylag_otel.wrappers import Call, Maker, fault

_NS_PER_SECOND = 1e9

#: The totals of what auth_token was asked, apart from those of Keystone itself.
SERVED = Ledger()

_recorders: dict[str, Callable[[float, dict[str, Any]], None]] = {}


def create(meter: Meter) -> None:
    """Create the instruments of a service in this process."""
    SERVED.reset(histogram(meter, instruments.REQUEST_DURATION))
    observe_ledger(meter, SERVED, instruments.PHASE_TIME, instruments.TALLIES)
    observe_readings(meter, instruments.GAUGES, configuration.READ)
    for name, instrument in instruments.HISTOGRAMS.items():
        _recorders[name] = histogram(meter, instrument, instruments.BUCKETS[name])


def record(name: str, seconds: float, attributes: dict[str, Any]) -> None:
    """Record seconds; `name` is a key of ``instruments.HISTOGRAMS``."""
    recorder = _recorders.get(name)
    if recorder is not None:
        recorder(seconds, attributes)


def recorded(name: str, attributes: dict[str, Any]) -> Maker:
    """Record how long a call takes, whatever comes of it."""

    def maker(call: Call) -> Call:
        @wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            moment = now()
            try:
                return call(*args, **kwargs)
            finally:
                try:
                    record(name, (now() - moment) / _NS_PER_SECOND, attributes)
                except Exception:
                    fault(call)

        return watched

    return maker

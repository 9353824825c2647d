"""Create the instruments of a meter from their declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from inspect import signature
from typing import Any, Callable

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from keylag_otel.gauges import Observations
from keylag_otel.instruments import DURATION_BUCKETS, Instrument
from keylag_otel.request_aggregator import Record, RequestAggregator

Callback = Callable[[], Observations]

_ADVICE = "explicit_bucket_boundaries_advisory"

#: Whether histograms take bucket bounds on creation: since OpenTelemetry 1.30.
SUPPORTS_BUCKET_ADVICE = _ADVICE in signature(Meter.create_histogram).parameters


def create_histogram(
    meter: Meter, instrument: Instrument, buckets: tuple[float, ...] = DURATION_BUCKETS
) -> Record:
    """Create a histogram; return its ``record(value, attributes)``."""
    advice: dict[str, Any] = {_ADVICE: buckets} if SUPPORTS_BUCKET_ADVICE else {}
    created = meter.create_histogram(
        instrument.name, instrument.unit, instrument.description, **advice
    )
    return created.record


def create_observable(
    meter: Meter, instrument: Instrument, read: Callback, create: Any = None
) -> None:
    """Create an observable counter, or what `create` makes, read by `read`."""

    def callback(options: CallbackOptions) -> Iterable[Observation]:
        del options
        return (Observation(value, attributes) for value, attributes in read())

    create = create or meter.create_observable_counter
    create(instrument.name, [callback], instrument.unit, instrument.description)


def create_request_counters(
    meter: Meter,
    aggregator: RequestAggregator,
    phase_time: Instrument,
    counters: Mapping[str, Instrument],
) -> None:
    """Create the counters that are read from an aggregator."""
    create_observable(meter, phase_time, aggregator.phase_seconds)
    for name, instrument in counters.items():
        create_observable(meter, instrument, partial(aggregator.counter_values, name))


def create_gauges(
    meter: Meter, gauges: Mapping[str, Instrument], callbacks: Mapping[str, Callback]
) -> None:
    """Create observable gauges with their callbacks."""
    for name, instrument in gauges.items():
        create_observable(
            meter, instrument, callbacks[name], meter.create_observable_gauge
        )

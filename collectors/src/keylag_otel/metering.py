"""Instruments of a meter from their declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from inspect import signature
from typing import Any, Callable

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from keylag_otel.gauges import Readings
from keylag_otel.instruments import DURATION_BUCKETS, Instrument
from keylag_otel.ledger import Ledger, Record

Read = Callable[[], Readings]

_ADVICE = "explicit_bucket_boundaries_advisory"

#: Whether an instrument can say its bounds: OpenTelemetry 1.30 brought that.
TAKES_BOUNDS = _ADVICE in signature(Meter.create_histogram).parameters


def histogram(
    meter: Meter, instrument: Instrument, buckets: tuple[float, ...] = DURATION_BUCKETS
) -> Record:
    """Create a histogram; return what records a value with its attributes."""
    advice: dict[str, Any] = {_ADVICE: buckets} if TAKES_BOUNDS else {}
    created = meter.create_histogram(
        instrument.name, instrument.unit, instrument.description, **advice
    )
    return created.record


def observe(
    meter: Meter, instrument: Instrument, read: Read, create: Any = None
) -> None:
    """Create a counter, or what `create` makes, that is read once per export."""

    def observed(options: CallbackOptions) -> Iterable[Observation]:
        del options
        return (Observation(value, attributes) for value, attributes in read())

    create = create or meter.create_observable_counter
    create(instrument.name, [observed], instrument.unit, instrument.description)


def observe_ledger(
    meter: Meter,
    ledger: Ledger,
    phase_time: Instrument,
    tallies: Mapping[str, Instrument],
) -> None:
    """Create the counters of what a ledger has added up."""
    observe(meter, phase_time, ledger.phase_seconds)
    for name, instrument in tallies.items():
        observe(meter, instrument, partial(ledger.tallied, name))


def observe_readings(
    meter: Meter, gauges: Mapping[str, Instrument], read: Mapping[str, Read]
) -> None:
    """Create the gauges of what is configured rather than counted."""
    for name, instrument in gauges.items():
        observe(meter, instrument, read[name], meter.create_observable_gauge)

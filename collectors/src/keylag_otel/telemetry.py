"""The way out: metrics from each worker, by OpenTelemetry's own variables.

Nothing may be started before a server forks its workers: exporter threads do
not survive a fork.  So each process starts its own, when it is told that it is
a new process or when its first request arrives, whichever comes first.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from keylag_otel import gauges, instruments
from keylag_otel.clock import COUNTS
from keylag_otel.ledger import LEDGER
from keylag_otel.version import __version__

LOG = logging.getLogger("keylag_otel")

#: The SDK's entry points, by the values of OTEL_METRICS_EXPORTER and, for
#: "otlp", of OTEL_EXPORTER_OTLP_PROTOCOL.
_EXPORTER_GROUP = "opentelemetry_metrics_exporter"
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


class _Process:
    """Which process was started, and with which provider."""

    pid: int | None = None
    provider: MeterProvider | None = None


def use(provider: MeterProvider | None) -> None:
    """Use this provider in every process, instead of what the variables say."""
    _Process.provider = provider
    _Process.pid = None


def start_once_per_process() -> None:
    """Start this process's metrics, once; never raises."""
    pid = os.getpid()
    if _Process.pid == pid:
        return
    _Process.pid = pid
    try:
        LEDGER.reset()
        _create_instruments(_meter())
    except Exception:
        LOG.warning("keylag measures, but cannot export metrics", exc_info=True)


def _meter() -> Meter:
    """Return a meter of the given, the global, or a provider of our own."""
    provider = _Process.provider or _global_provider() or _own_provider()
    if provider is None:
        return metrics.get_meter("keylag_otel", __version__)
    return provider.get_meter("keylag_otel", __version__)


def _global_provider() -> MeterProvider | None:
    """Return what `opentelemetry-instrument` or the deployer has set, if any."""
    provider = metrics.get_meter_provider()
    return provider if hasattr(provider, "force_flush") else None


def _own_provider() -> MeterProvider | None:
    """Build a provider from the OTEL_* variables; None without the SDK."""
    exporters = os.environ.get("OTEL_METRICS_EXPORTER", "otlp").split(",")
    if "none" in exporters:
        return None
    try:
        from opentelemetry.sdk.metrics import (  # noqa: PLC0415 - the SDK is optional
            MeterProvider as SdkMeterProvider,
        )
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415
            PeriodicExportingMetricReader,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    except ImportError:
        LOG.warning(
            "keylag measures, but exports no metrics: the OpenTelemetry SDK is "
            "not installed; install keylag-otel[otlp]"
        )
        return None
    readers = [PeriodicExportingMetricReader(_exporter(name)) for name in exporters]
    resource = Resource.create().merge(Resource({"service.instance.id": instance_id()}))
    return SdkMeterProvider(readers, resource=resource)


def _exporter(name: str) -> Any:
    name = name.strip()
    if name == "otlp":
        protocol = os.environ.get(
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
            os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        )
        name = _OTLP.get(protocol, protocol)
    for entry_point in entry_points(group=_EXPORTER_GROUP):
        if entry_point.name == name:
            return entry_point.load()()
    message = (
        f"there is no metrics exporter {name!r}; install the package that has it, "
        "or change OTEL_METRICS_EXPORTER or OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    raise LookupError(message)


def instance_id() -> str:
    """Return a name for this worker that a recycled worker takes over.

    A process id would make a new series at each recycling; uWSGI's worker
    number does not.
    """
    try:
        import uwsgi  # noqa: PLC0415 - only inside uWSGI
    except ImportError:
        return f"{socket.gethostname()}/{os.getpid()}"
    return f"{socket.gethostname()}/{uwsgi.worker_id()}"


def _create_instruments(meter: Meter) -> None:
    duration = instruments.REQUEST_DURATION
    histogram = meter.create_histogram(
        duration.name,
        duration.unit,
        duration.description,
        explicit_bucket_boundaries_advisory=instruments.DURATION_BUCKETS,
    )
    LEDGER.reset(histogram.record)
    _observe(meter, instruments.PHASE_TIME, LEDGER.phase_seconds)
    for name in COUNTS:
        _observe(meter, instruments.COUNTERS[name], partial(LEDGER.count, name))
    for name, instrument in instruments.TALLIES.items():
        _observe(meter, instrument, partial(LEDGER.tallied, name))
    for name, read in gauges.READ.items():
        _observe(meter, instruments.GAUGES[name], read, meter.create_observable_gauge)


def _observe(
    meter: Meter, instrument: instruments.Instrument, read: Any, create: Any = None
) -> None:
    def observe(options: CallbackOptions) -> Iterator[Observation]:
        del options
        return (Observation(value, attributes) for value, attributes in read())

    create = create or meter.create_observable_counter
    create(instrument.name, [observe], instrument.unit, instrument.description)

"""Keylag's own meter provider, and the exporters of all signals.

OpenTelemetry's environment variables configure both.  The SDK and the exporters are
optional and slow to import, so they are imported when Keystone is loaded.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from typing import Any, Callable, cast

from opentelemetry.metrics import MeterProvider

from keylag_otel import environment, instrument_factory, instruments
from keylag_otel.auth_token import instruments as auth_token_instruments
from keylag_otel.export_failures import MonitoredExport, OwnExportFilter
from keylag_otel.log_rate_limit import RateLimitFilter, add_log_filter
from keylag_otel.model import CELLS
from keylag_otel.request_aggregator import AGGREGATE_LIMIT
from keylag_otel.shutdown import FlushAtExit

LOG = logging.getLogger("keylag_otel")


@dataclass(frozen=True)
class Signal:
    """A signal: its name in variables, and its default exporter."""

    name: str
    default: str


METRICS = Signal("metrics", "otlp")
#: Tracing costs CPU time, so it is opt-in.
TRACES = Signal("traces", "none")

#: Entry points of the SDK by OTLP protocol.
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}

#: Modules that exporters import only when they are created, by entry point.
_LAZY_IMPORTS = {"otlp_proto_http": ("requests",)}

#: Bucket bounds by metric name.
_BUCKET_BOUNDS: dict[str, tuple[float, ...]] = {
    instruments.REQUEST_DURATION.name: instruments.DURATION_BUCKETS,
    auth_token_instruments.REQUEST_DURATION.name: instruments.DURATION_BUCKETS,
    **{
        auth_token_instruments.HISTOGRAMS[name].name: bounds
        for name, bounds in auth_token_instruments.BUCKETS.items()
    },
}

Exporter = Callable[[], Any]
#: Maps the SDK's ``MetricsData`` to what is exported.
Transform = Callable[[Any], Any]


def exporter_names(
    environ: Mapping[str, str] = os.environ, signal: Signal = METRICS
) -> tuple[str, ...]:
    """Return the entry points of the configured exporters."""
    # An empty variable is as an unset one.
    name = signal.name.upper()
    given = environ.get(f"OTEL_{name}_EXPORTER") or signal.default
    protocol = (
        environ.get(f"OTEL_EXPORTER_OTLP_{name}_PROTOCOL")
        or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "http/protobuf"
    )
    names = {"otlp": _OTLP.get(protocol, protocol)}
    stripped = [each.strip() for each in given.split(",") if each.strip()]
    return () if "none" in stripped else tuple(names.get(n, n) for n in stripped)


@lru_cache(maxsize=2)
def load_exporters(
    names: tuple[str, ...], signal: Signal = METRICS
) -> tuple[Exporter, ...]:
    """Import exporters; raise LookupError with advice if one is not installed."""
    group = f"opentelemetry_{signal.name}_exporter"
    found = {e.name: e for e in entry_points(group=group)}
    for name in names:
        if name not in found:
            message = (
                f"there is no {signal.name} exporter {name!r}; install its package, or "
                f"change OTEL_{signal.name.upper()}_EXPORTER or "
                "OTEL_EXPORTER_OTLP_PROTOCOL"
            )
            raise LookupError(message)
    return tuple(found[name].load() for name in names)


def make_exporters(names: tuple[str, ...], signal: Signal = METRICS) -> list[Any]:
    """Create exporters that log their first failure and their recovery."""
    exporters = [exporter() for exporter in load_exporters(names, signal)]
    add_log_filter(OwnExportFilter, *map(type, exporters))
    for exporter in exporters:
        exporter.export = MonitoredExport(exporter, signal.name)
    return exporters


def import_exporters() -> None:
    """Import what `build` needs, before workers are forked; start nothing."""
    try:
        if _sdk() is None:
            return
        for signal in (METRICS, TRACES):
            names = exporter_names(signal=signal)
            load_exporters(names, signal)
            for name in names:
                for module in _LAZY_IMPORTS.get(name, ()):
                    import_module(module)
    except Exception:
        LOG.debug("keylag could not import its exporters yet", exc_info=True)


def build(transforms: Iterable[Transform] = ()) -> MeterProvider | None:
    """Start a provider that flushes at exit; None if no exporter is configured.

    It exports what the transforms, in turn, make of the collected metrics.
    """
    names = exporter_names()
    if not names:
        return None
    sdk = _sdk()
    if sdk is None:
        LOG.warning(
            "keylag exports no metrics: the OpenTelemetry SDK is not installed; "
            "install keylag-otel[otlp]"
        )
        return None
    exporters = make_exporters(names)
    for exporter in exporters:
        exporter.export = _export_transformed(exporter.export, tuple(transforms))
    reader = sdk["PeriodicExportingMetricReader"]
    add_log_filter(RateLimitFilter, reader)
    readers = [reader(exporter, **_cardinality_limits(sdk)) for exporter in exporters]
    resource = worker_resource(sdk["Resource"])
    # The SDK's own shutdown at exit may wait 30 seconds for an endpoint.
    provider = sdk["MeterProvider"](
        readers, resource=resource, shutdown_on_exit=False, views=views()
    )
    seconds = environment.last_export_seconds()
    FlushAtExit(partial(provider.shutdown, timeout_millis=seconds * 1000), seconds)
    return cast("MeterProvider", provider)


def _cardinality_limits(sdk: dict[str, Any]) -> dict[str, Any]:
    """Return a reader's argument that raises the cardinality limit of counters.

    Since 1.45 the SDK limits a metric to 2000 series, fewer than the cells of two
    hundred routes.  The aggregator has its own limit.
    """
    name = "cardinality_limits"
    if name not in signature(sdk["PeriodicExportingMetricReader"]).parameters:
        return {}
    return {name: {sdk["ObservableCounter"]: (AGGREGATE_LIMIT + 1) * len(CELLS)}}


def views() -> list[Any]:
    """Return views with bucket bounds, for releases whose histograms take none."""
    if instrument_factory.SUPPORTS_BUCKET_ADVICE:
        return []
    from opentelemetry.sdk.metrics.view import (  # noqa: PLC0415 - the SDK is optional
        ExplicitBucketHistogramAggregation,
        View,
    )

    return [
        View(
            instrument_name=name, aggregation=ExplicitBucketHistogramAggregation(bounds)
        )
        for name, bounds in _BUCKET_BOUNDS.items()
    ]


def _export_transformed(
    export: Callable[..., Any], transforms: tuple[Transform, ...]
) -> Callable[..., Any]:
    def export_all(collected: Any, *args: Any, **kwargs: Any) -> Any:
        for transform in transforms:
            collected = transform(collected)
        return export(collected, *args, **kwargs)

    return export_all


def _sdk() -> dict[str, Any] | None:
    """Return the classes that are used of the SDK, or None if it is not installed."""
    try:
        from opentelemetry.sdk.metrics import (  # noqa: PLC0415 - the SDK is optional
            MeterProvider,
            ObservableCounter,
        )
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415
            PeriodicExportingMetricReader,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    except ImportError:
        return None
    used = (MeterProvider, ObservableCounter, PeriodicExportingMetricReader, Resource)
    return {each.__name__: each for each in used}


def worker_resource(resource: Any) -> Any:
    """Return the SDK's resource of this worker: its host, and ``host/worker``.

    uWSGI's worker number stays the same when a worker is recycled, so its series
    continue.  Elsewhere the process id makes new series.  OTEL_RESOURCE_ATTRIBUTES may
    set another ``host.name``, as several nodes on one host need.
    """
    named = resource({"host.name": socket.gethostname()}).merge(resource.create())
    try:
        import uwsgi  # noqa: PLC0415 - only inside uWSGI
    except ImportError:
        worker = os.getpid()
    else:
        worker = uwsgi.worker_id()
    instance = f"{named.attributes['host.name']}/{worker}"
    return named.merge(resource({"service.instance.id": instance}))

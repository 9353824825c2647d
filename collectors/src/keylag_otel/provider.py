"""A metrics provider of our own, as OpenTelemetry's variables describe it.

How exporters are found is the same for every signal.

The SDK and the exporters are optional and slow to import, so nothing here
imports them until Keystone itself is loaded.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from typing import Any, Callable, cast

from opentelemetry.metrics import MeterProvider

from keylag_otel import environment, instruments, metering
from keylag_otel.auth_token import instruments as served
from keylag_otel.farewell import Farewell
from keylag_otel.ledger import LIMIT
from keylag_otel.model import CELLS
from keylag_otel.outage import Exports, NotOurs
from keylag_otel.seldom import Seldom, hear_less

LOG = logging.getLogger("keylag_otel")


@dataclass(frozen=True)
class Signal:
    """What is exported: its name in variables, and its exporter unless one says."""

    name: str
    default: str


METRICS = Signal("metrics", "otlp")
#: Traces cost something, so they are not exported unless that is asked for.
TRACES = Signal("traces", "none")

#: The SDK's entry points, by the protocol of "otlp".
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}

#: What exporters import only when they are made, in a worker that should serve.
_IMPORTED_LATE = {"otlp_proto_http": ("requests",)}

#: Metric to the bounds of its histogram.
_BOUNDS: dict[str, tuple[float, ...]] = {
    instruments.REQUEST_DURATION.name: instruments.DURATION_BUCKETS,
    served.REQUEST_DURATION.name: instruments.DURATION_BUCKETS,
    **{served.HISTOGRAMS[name].name: bounds for name, bounds in served.BUCKETS.items()},
}

Exporter = Callable[[], Any]
#: Given the SDK's ``MetricsData``, returns others.
Complete = Callable[[Any], Any]


def exporter_names(
    environ: Mapping[str, str] = os.environ, signal: Signal = METRICS
) -> tuple[str, ...]:
    """Return the entry points of the exporters that the variables ask for."""
    name = signal.name.upper()
    asked = environ.get(f"OTEL_{name}_EXPORTER", signal.default).split(",")
    protocol = environ.get(
        f"OTEL_EXPORTER_OTLP_{name}_PROTOCOL",
        environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    )
    names = {"otlp": _OTLP.get(protocol, protocol)}
    stripped = [name.strip() for name in asked]
    return () if "none" in stripped else tuple(names.get(n, n) for n in stripped)


@lru_cache(maxsize=2)
def load_exporters(
    names: tuple[str, ...], signal: Signal = METRICS
) -> tuple[Exporter, ...]:
    """Import the exporters; LookupError says what to do about one that is not there."""
    group = f"opentelemetry_{signal.name}_exporter"
    found = {e.name: e for e in entry_points(group=group)}
    for name in names:
        if name not in found:
            message = (
                f"there is no {signal.name} exporter {name!r}; install the package "
                f"that has it, or change OTEL_{signal.name.upper()}_EXPORTER or "
                "OTEL_EXPORTER_OTLP_PROTOCOL"
            )
            raise LookupError(message)
    return tuple(found[name].load() for name in names)


def make_exporters(names: tuple[str, ...], signal: Signal = METRICS) -> list[Any]:
    """Make the exporters; each tells once when it fails, and when it works again."""
    exporters = [exporter() for exporter in load_exporters(names, signal)]
    hear_less(NotOurs, *map(type, exporters))
    for exporter in exporters:
        exporter.export = Exports(exporter, signal.name)
    return exporters


def prepare() -> None:
    """Import what `build` needs, before workers are forked; starts nothing."""
    try:
        if _sdk() is None:
            return
        for signal in (METRICS, TRACES):
            names = exporter_names(signal=signal)
            load_exporters(names, signal)
            for name in names:
                for module in _IMPORTED_LATE.get(name, ()):
                    import_module(module)
    except Exception:
        LOG.debug("keylag could not load its exporters yet", exc_info=True)


def build(completed: Complete | None = None) -> MeterProvider | None:
    """Start a provider that closes itself in time; None without one to start.

    It exports what `completed` makes of what was collected.
    """
    names = exporter_names()
    if not names:
        return None
    sdk = _sdk()
    if sdk is None:
        LOG.warning(
            "keylag measures, but exports no metrics: the OpenTelemetry SDK is "
            "not installed; install keylag-otel[otlp]"
        )
        return None
    exporters = make_exporters(names)
    if completed is not None:
        for exporter in exporters:
            exporter.export = _completing(exporter.export, completed)
    reader = sdk["PeriodicExportingMetricReader"]
    hear_less(Seldom, reader)
    readers = [reader(exporter, **_limits(sdk)) for exporter in exporters]
    resource = sdk["Resource"].create({"service.instance.id": instance_id()})
    # The SDK's own shutdown at exit may wait 30 seconds for an endpoint.
    provider = sdk["MeterProvider"](
        readers, resource=resource, shutdown_on_exit=False, views=views()
    )
    seconds = environment.last_export_seconds()
    Farewell(partial(provider.shutdown, timeout_millis=seconds * 1000), seconds)
    return cast("MeterProvider", provider)


def _limits(sdk: dict[str, Any]) -> dict[str, Any]:
    """Return the argument that lets a reader have all series of a ledger.

    A ledger has a limit of its own.  The SDK's, since 1.45, is 2000 for a metric:
    less than the phases of two hundred routes.
    """
    name = "cardinality_limits"
    if name not in signature(sdk["PeriodicExportingMetricReader"]).parameters:
        return {}
    return {name: {sdk["ObservableCounter"]: (LIMIT + 1) * len(CELLS)}}


def views() -> list[Any]:
    """Return views with the bounds of histograms, where instruments take none."""
    if metering.TAKES_BOUNDS:
        return []
    from opentelemetry.sdk.metrics.view import (  # noqa: PLC0415 - the SDK is optional
        ExplicitBucketHistogramAggregation,
        View,
    )

    return [
        View(
            instrument_name=name, aggregation=ExplicitBucketHistogramAggregation(bounds)
        )
        for name, bounds in _BOUNDS.items()
    ]


def _completing(export: Callable[..., Any], completed: Complete) -> Callable[..., Any]:
    def export_all(collected: Any, *args: Any, **kwargs: Any) -> Any:
        return export(completed(collected), *args, **kwargs)

    return export_all


def _sdk() -> dict[str, Any] | None:
    """Return what we use of the SDK; None if it is not installed."""
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

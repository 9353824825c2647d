"""The names of all metrics in Prometheus, from their declarations."""

from collections.abc import Iterator
from typing import Final

from keylag_dashboards.causes import METRICS
from keylag_exporters import collector, sources
from keylag_otel import instruments
from keylag_otel.auth_token import instruments as auth_token
from keylag_otel.instruments import Instrument

UNIT_SUFFIXES: Final = {"s": "_seconds", "By": "_bytes"}
"""Suffixes that the Collector's Prometheus exporter adds for units."""
HISTOGRAM_SERIES: Final = ("_bucket", "_count", "_sum")


def instruments_by_kind() -> Iterator[tuple[Instrument, str]]:
    """Yield every metric of keylag-otel with its type."""
    yield instruments.REQUEST_DURATION, "histogram"
    yield instruments.PHASE_TIME, "counter"
    yield auth_token.REQUEST_DURATION, "histogram"
    yield auth_token.PHASE_TIME, "counter"
    for kind, table in (
        ("counter", instruments.REQUEST_COUNTERS),
        ("histogram", instruments.CALL_DURATIONS),
        ("counter", instruments.COUNTERS),
        ("counter", instruments.PROCESS),
        ("gauge", instruments.GAUGES),
        ("histogram", auth_token.HISTOGRAMS),
        ("counter", auth_token.COUNTERS),
        ("gauge", auth_token.GAUGES),
    ):
        for instrument in table.values():
            yield instrument, kind


def prometheus_name(instrument: Instrument, kind: str) -> str:
    """Return the name in Prometheus; counters end in `_total`."""
    name = instrument.name.replace(".", "_")
    suffix = UNIT_SUFFIXES.get(instrument.unit, "")
    return f"{name}{suffix}{'_total' if kind == 'counter' else ''}"


def declared_series() -> frozenset[str]:
    """Return the name of each series that keylag-otel and others may send."""
    exported = (
        metric for source in sources.load_source_types() for metric in source.metrics
    )
    families = [
        *((prometheus_name(one, kind), kind) for one, kind in instruments_by_kind()),
        *((one.name, one.type) for one in (*exported, *collector.METRICS)),
    ]
    return frozenset(METRICS.values()) | frozenset(
        name + suffix
        for name, kind in families
        for suffix in (HISTOGRAM_SERIES if kind == "histogram" else ("",))
    )

"""The exposition equals that of prometheus_client."""

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from keylag_exporters.families import Families
from keylag_exporters.metric import Metric

HELP = 'A back\\slash, a "quote" and a\nline.'
DECLARED = [
    Metric("c_total", "counter", HELP, ("zone", "a")),
    Metric("g", "gauge", HELP),
    Metric("h_seconds", "histogram", HELP, ("route", "k")),
    Metric("empty", "gauge", HELP),
]
UPPERS = (0.001, 0.5, 10.0)
labels = st.tuples(st.text(), st.text())
numbers = st.floats() | st.integers(0, 2**53) | st.booleans()


class Theirs:
    """A collector of the same families, built with prometheus_client."""

    def __init__(self, counters, gauges, histograms):
        counter, gauge, histogram, _ = DECLARED
        self.families = [
            CounterMetricFamily(counter.name, HELP, labels=counter.labels),
            GaugeMetricFamily(gauge.name, HELP),
            HistogramMetricFamily(histogram.name, HELP, labels=histogram.labels),
        ]
        for values, value in counters:
            self.families[0].add_metric(values, value)
        for value in gauges:
            self.families[1].add_metric((), value)
        for values, total in histograms:
            bounds = [*map(str, UPPERS), "+Inf"]
            buckets = list(zip(bounds, [1, 2, 3, 4], strict=True))
            self.families[2].add_metric(values, buckets, total)

    def collect(self):
        return [family for family in self.families if family.samples]


@given(
    st.lists(st.tuples(labels, numbers)),
    st.lists(numbers),
    st.lists(st.tuples(labels, st.floats())),
)
@settings(deadline=None)
def test_exposition_equals_that_of_prometheus_client(counters, gauges, histograms):
    ours = Families(DECLARED)
    for values, value in counters:
        ours.add("c_total", value, *values)
    for value in gauges:
        ours.add("g", value)
    for values, total in histograms:
        ours.add_histogram("h_seconds", UPPERS, [1, 2, 3], (4, total), *values)
    registry = CollectorRegistry()
    registry.register(Theirs(counters, gauges, histograms))

    assert ours.expose() == generate_latest(registry)

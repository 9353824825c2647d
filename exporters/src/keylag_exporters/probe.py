"""The probe source: the time of each hop to a URL, under blackbox_exporter's names.

blackbox_exporter has gauges of the latest probe; the histogram here has all of them.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from keylag_exporters.families import Families
from keylag_exporters.http_probe import PHASES, STATUS, HttpProbe, parse_url
from keylag_exporters.metric import Metric
from keylag_exporters.model import Option, SourceType, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from keylag_exporters.http_probe import ProbeResult

DEFAULT_URL = "http://127.0.0.1:5000/v3"
DEADLINE_SHARE = 0.9
"""Share of the timeout after which a probe fails by itself and names the phase."""
BUCKETS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""Upper bounds in seconds."""

METRICS = (
    Metric(
        "probe_success",
        "gauge",
        "Whether the latest probe got a complete response with a status 2xx.",
    ),
    Metric("probe_duration_seconds", "gauge", "Duration of the latest probe."),
    Metric(
        "probe_dns_lookup_time_seconds",
        "gauge",
        "Time of the latest name look-up.",
    ),
    Metric(
        "probe_http_duration_seconds",
        "gauge",
        "Time of the latest probe by phase; 0 for a phase that it did not reach.",
        ("phase",),
    ),
    Metric(
        "probe_http_status_code",
        "gauge",
        "Status of the latest response; 0 without one.",
    ),
    Metric(
        "keylag_probe_phase_duration_seconds",
        "histogram",
        "Time of all probes by phase, including the phase in which one failed.",
        ("phase",),
    ),
    Metric(
        "keylag_probe_failures_total",
        "counter",
        "Failed probes by the phase in which they failed; `status`: not a 2xx.",
        ("phase",),
    ),
)


class _Histogram:
    """Counts of durations by BUCKETS, and their sum."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds


class ProbeSource:
    """Probes one URL at each read."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        timeout = DEADLINE_SHARE * settings["timeout"]
        self._url = settings["url"]
        self._probe = HttpProbe(self._url, timeout, settings["tls_ca"])
        self._histograms: dict[str, _Histogram] = {}
        self._failures = dict.fromkeys((*PHASES, STATUS), 0)

    def collect(self) -> Families:
        """Return all families of a probe that got a response.

        Raises UnreachableError with the families of any other probe.
        """
        result = self._probe.run()
        for phase, seconds in result.seconds.items():
            self._histograms.setdefault(phase, _Histogram()).observe(seconds)
        if result.failed_phase:
            self._failures[result.failed_phase] += 1
        families = self._families(result)
        if result.failed_phase in PHASES:
            message = f"{self._url}: {result.failed_phase} failed: {result.reason}"
            raise UnreachableError(message, families)
        return families

    def close(self) -> None:
        """Do nothing: each probe has its own connection."""

    def _families(self, result: ProbeResult) -> Families:
        families = Families(METRICS)
        families.add("probe_success", not result.failed_phase)
        families.add("probe_duration_seconds", result.total_seconds)
        look_up = result.seconds.get("resolve", 0.0)
        families.add("probe_dns_lookup_time_seconds", look_up)
        families.add("probe_http_status_code", result.status)
        for phase in PHASES:
            seconds = result.seconds.get(phase, 0.0)
            families.add("probe_http_duration_seconds", seconds, phase)
        for phase, histogram in self._histograms.items():
            cumulative = list(accumulate(histogram.counts))
            families.add_histogram(
                "keylag_probe_phase_duration_seconds",
                BUCKETS,
                cumulative[:-1],
                (cumulative[-1], histogram.sum),
                phase,
            )
        for phase, failures in self._failures.items():
            families.add("keylag_probe_failures_total", failures, phase)
        return families


SOURCE_TYPE = SourceType(
    name="probe",
    help="Ask a URL and time name look-up, connect, TLS, wait and transfer."
    " Metric names are those of blackbox_exporter.",
    options=(
        Option(
            "url", "URL to ask; Keystone's /v3 costs it little.", parse_url, DEFAULT_URL
        ),
        Option("tls-ca", "File with CA certificates, instead of the system's."),
    ),
    metrics=METRICS,
    create=ProbeSource,
    port=9725,
    interval=5.0,
)

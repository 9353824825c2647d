"""Findings as metrics: one gauge for each cause, with what it costs now."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from keylag.diagnosis.ranking import Diagnosis
from keylag.errors import KeylagError

COST: Final = "keylag_diagnosis_cost_seconds"
KNOWN: Final = "keylag_diagnosis_known"
UNEXPLAINED: Final = "keylag_diagnosis_unexplained_seconds"
SUCCESS: Final = "keylag_diagnosis_success"
EVERY_SECONDS: Final = 30.0
"""Scrapes in between get the same answer."""


@dataclass(eq=False)
class DiagnosisCollector(Collector):
    """Diagnoses at a scrape, but not more often than every `interval` seconds."""

    diagnose: Callable[[], Diagnosis]
    interval: float = EVERY_SECONDS
    _latest: Diagnosis | None = None
    _at: float = -EVERY_SECONDS
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing, so that a registration asks no Prometheus."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield whether each cause could be judged, and what it costs.

        Without token calls there are no costs: nothing is known.
        """
        with self._lock:
            if time.monotonic() - self._at >= self.interval:
                self._latest, self._at = self._ask(), time.monotonic()
            diagnosis = self._latest
        text = "Whether the latest diagnosis could read Prometheus."
        yield GaugeMetricFamily(SUCCESS, text, value=float(diagnosis is not None))
        if diagnosis is None:
            return
        yield _known(diagnosis)
        if diagnosis.facts.calls or diagnosis.findings:
            yield _costs(diagnosis)
            yield _unexplained(diagnosis)

    def _ask(self) -> Diagnosis | None:
        try:
            return self.diagnose()
        except KeylagError:
            return None


def _costs(diagnosis: Diagnosis) -> GaugeMetricFamily:
    text = "Seconds per second that a cause costs token calls; 0 if it is no finding."
    family = GaugeMetricFamily(COST, text, labels=["id", "name", "dashboard"])
    costs = {one.rule.id: one.cost for one in diagnosis.findings}
    for rule in diagnosis.rules:
        labels = [rule.id, rule.name, rule.board]
        family.add_metric(labels, costs.get(rule.id, 0.0))
    return family


def _unexplained(diagnosis: Diagnosis) -> GaugeMetricFamily:
    text = "Seconds of a call that is slow for a reason that no cause explains."
    family = GaugeMetricFamily(UNEXPLAINED, text, labels=["method", "auth_method"])
    for one in diagnosis.unexplained:
        family.add_metric(one.kind, one.seconds)
    return family


def _known(diagnosis: Diagnosis) -> GaugeMetricFamily:
    text = "Whether a cause can be judged; 0 if its source is missing."
    family = GaugeMetricFamily(KNOWN, text, labels=["id", "name"])
    unknown = {one.rule.id for one in diagnosis.unknown}
    for rule in diagnosis.rules:
        family.add_metric([rule.id, rule.name], float(rule.id not in unknown))
    return family


def serve(diagnose: Callable[[], Diagnosis], host: str, port: int) -> int:
    """Serve the findings until the process ends; return the port."""
    registry = CollectorRegistry()
    registry.register(DiagnosisCollector(diagnose))
    server, _ = start_http_server(port, host, registry)
    return int(server.server_port)

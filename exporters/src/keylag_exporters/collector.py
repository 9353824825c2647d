"""Runs every source within its own time-out, so that one silences no other."""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from keylag_exporters.families import Families
from keylag_exporters.model import Declared, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric

    from keylag_exporters.model import Source

LOG = logging.getLogger("keylag_exporters")

METRICS = (
    Declared(
        "keylag_exporter_source_up",
        "gauge",
        "Whether what the source reads could be reached in this scrape.",
        ("source",),
    ),
    Declared(
        "keylag_exporter_source_success",
        "gauge",
        "Whether the source delivered all of its metrics in this scrape.",
        ("source",),
    ),
    Declared(
        "keylag_exporter_source_duration_seconds",
        "gauge",
        "How long the source took in this scrape.",
        ("source",),
    ),
    Declared(
        "keylag_exporter_source_failures_total",
        "counter",
        "Scrapes that failed, by reason: unreachable, timeout or error.",
        ("source", "reason"),
    ),
)


@dataclass
class Running:
    """A source and its latest run; a run that hangs is never started twice."""

    name: str
    source: Source
    timeout: float
    failures: dict[str, int] = field(
        default_factory=lambda: {"unreachable": 0, "timeout": 0, "error": 0}
    )
    run: Run | None = None

    def start(self) -> Run:
        """Start a run, or return the one that still hangs."""
        if self.run is None or not self.run.thread.is_alive():
            self.run = Run(self.source, self.name)
        return self.run


class Run:
    """One call of a source's `collect` in a thread of its own."""

    def __init__(self, source: Source, name: str) -> None:
        self.families: list[Metric] = []
        self.reason = ""
        self.began = time.monotonic()
        self.seconds = 0.0
        self._source = source
        self.thread = threading.Thread(
            target=self._run, args=(name,), name=f"collect-{name}", daemon=True
        )
        self.thread.start()

    def _run(self, name: str) -> None:
        """Collect; remember the reason of a failure, never raise."""
        try:
            self.families = list(self._source.collect())
        except UnreachableError as error:
            self.reason = "unreachable"
            LOG.warning("%s: %s", name, error)
        except Exception:
            self.reason = "error"
            LOG.exception("%s: the scrape failed", name)
        finally:
            self.seconds = time.monotonic() - self.began


class SourceCollector(Collector):
    """A collector of several sources, for a registry."""

    def __init__(self, sources: Iterable[Running]) -> None:
        self._sources = list(sources)
        self._lock = threading.Lock()
        self._began = -math.inf
        self._found: list[Metric] = []

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not scrape."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return every source's families, then how each of them fared.

        Who had to wait gets what was begun meanwhile: a Prometheus that gives up and
        asks again would otherwise be answered ever later.
        """
        asked = time.monotonic()
        with self._lock:
            if self._began < asked:
                self._began = time.monotonic()
                self._found = list(self._scrape())
            return self._found

    def _scrape(self) -> Iterator[Metric]:
        own = Families(METRICS)
        runs = [(one, one.start()) for one in self._sources]
        began = time.monotonic()
        for one, run in runs:
            run.thread.join(max(0.0, began + one.timeout - time.monotonic()))
            yield from self._report(one, run, own)
        yield from own

    def _report(self, one: Running, run: Run, own: Families) -> list[Metric]:
        """Note how a run went; return its families if it went well."""
        late = run.thread.is_alive()
        reason = "timeout" if late else run.reason
        if late:
            LOG.warning("%s: no answer within %s seconds", one.name, one.timeout)
        if reason:
            one.failures[reason] += 1
        seconds = time.monotonic() - run.began if late else run.seconds
        up = reason in ("", "error")
        own.add("keylag_exporter_source_up", up, one.name)
        own.add("keylag_exporter_source_success", not reason, one.name)
        own.add("keylag_exporter_source_duration_seconds", seconds, one.name)
        for why, count in one.failures.items():
            own.add("keylag_exporter_source_failures_total", count, one.name, why)
        return [] if reason else run.families

"""Collects from all sources, each with its own timeout.

A scrape starts a read of each source whose interval is over; other scrapes get the
latest result. Failures are results too: they are repeated at the next interval, not at
each scrape. A scrape with a short timeout gets the previous result while a read is
still running, until the source's own timeout is over.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keylag_exporters.families import Families
from keylag_exporters.metric import Metric
from keylag_exporters.model import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keylag_exporters.model import Source

LOG = logging.getLogger("keylag_exporters")

RETRY_SECONDS = 5.0
"""An unreachable source is retried after this time, if its interval is longer."""
DUE_SHARE = 0.9
"""A read is due after this share of the interval. Scrapes are slightly irregular, and a
source whose interval is the scrape interval must be read by each scrape."""
HEAD_START_SECONDS = 0.02
"""Delay before the next read starts in parallel. Most reads are shorter, and threads
that compete for the GIL take more CPU time."""

METRICS = (
    Metric(
        "keylag_exporter_source_up",
        "gauge",
        "Whether the latest read reached the server or file.",
        ("source",),
    ),
    Metric(
        "keylag_exporter_source_success",
        "gauge",
        "Whether the latest read returned all metrics of the source.",
        ("source",),
    ),
    Metric(
        "keylag_exporter_source_duration_seconds",
        "gauge",
        "Duration of the latest read.",
        ("source",),
    ),
    Metric(
        "keylag_exporter_source_read_timestamp_seconds",
        "gauge",
        "Start of the latest read, in Unix time (option interval).",
        ("source",),
    ),
    Metric(
        "keylag_exporter_source_failures_total",
        "counter",
        "Failed scrapes by reason: unreachable, timeout or error.",
        ("source", "reason"),
    ),
)


@dataclass
class ScheduledSource:
    """A source, its latest reads and its failures; at most one read runs at a time."""

    name: str
    source: Source
    timeout: float
    interval: float = 0.0
    failures: dict[str, int] = field(
        default_factory=lambda: {"unreachable": 0, "timeout": 0, "error": 0}
    )
    current_read: SourceRead | None = None
    previous_read: SourceRead | None = None
    reason: str = ""

    def start_if_due(self) -> SourceRead:
        """Return the latest read; start a new one if it is due."""
        if self.current_read is None or self.current_read.is_next_due(self.interval):
            self.previous_read = self.current_read
            self.current_read = SourceRead(self.source, self.name)
        return self.current_read

    def read_to_report(self, latest: SourceRead) -> SourceRead:
        """Return the previous read while the latest is running within its timeout."""
        overdue = time.monotonic() >= latest.started + self.timeout
        return (
            self.previous_read
            if self.previous_read and latest.is_running and not overdue
            else latest
        )

    def record_outcome(self, reason: str, message: str) -> None:
        """Count a failure; log it if the previous scrape had another outcome."""
        if reason:
            self.failures[reason] += 1
        if reason and reason != self.reason:
            LOG.warning("%s: %s: %s", self.name, reason, message)
        elif self.reason and not reason:
            LOG.info("%s: recovered", self.name)
        self.reason = reason


class SourceRead:
    """One call of a source's `collect` in a thread of its own."""

    def __init__(self, source: Source, name: str) -> None:
        self.text = b""
        self.reason = ""
        self.message = ""
        self.timestamp = time.time()
        self.started = time.monotonic()
        self.seconds = 0.0
        self._source = source
        self._thread = threading.Thread(
            target=self._run, name=f"collect-{name}", daemon=True
        )
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the source has not returned yet."""
        return self._thread.is_alive()

    def is_next_due(self, interval: float) -> bool:
        """Return whether the next read is due."""
        if self.reason == "unreachable":
            interval = min(interval, RETRY_SECONDS)
        return (
            not self.is_running
            and time.monotonic() >= self.started + DUE_SHARE * interval
        )

    def wait(self, until: float) -> None:
        """Wait for the source, at most until `until` of the monotonic clock."""
        left = until - time.monotonic()
        self._thread.join(max(0.0, left) if math.isfinite(left) else None)

    def _run(self) -> None:
        """Collect; record a failure instead of raising."""
        try:
            self.text = self._source.collect().expose()
        except UnreachableError as error:
            self.reason, self.message = "unreachable", str(error)
            self.text = error.families.expose() if error.families else b""
        except Exception:  # noqa: BLE001 -- isolates sources from each other
            self.reason, self.message = "error", traceback.format_exc()
        finally:
            self.seconds = time.monotonic() - self.started


class SourceCollector:
    """Answers scrapes with the metrics of several sources."""

    def __init__(self, sources: Iterable[ScheduledSource]) -> None:
        self._sources = list(sources)
        self._lock = threading.Lock()
        self._scrape_started = -math.inf
        self._text = b""

    def expose(self, timeout: float = math.inf) -> bytes:
        """Return the metrics of all sources, and metrics about each read.

        Concurrent callers share one collection: the load stays constant when Prometheus
        gives up and scrapes again.

        `timeout` is in seconds.
        """
        requested = time.monotonic()
        with self._lock:
            if self._scrape_started < requested:
                self._scrape_started = time.monotonic()
                self._text = b"".join(self._scrape(requested + timeout))
            return self._text

    def _scrape(self, deadline: float) -> Iterator[bytes]:
        self_metrics = Families(METRICS)
        reads = []
        for scheduled in self._sources:
            source_read = scheduled.start_if_due()
            source_read.wait(min(deadline, time.monotonic() + HEAD_START_SECONDS))
            reads.append((scheduled, source_read))
        for scheduled, source_read in reads:
            source_read.wait(min(deadline, source_read.started + scheduled.timeout))
            yield self._report(
                scheduled, scheduled.read_to_report(source_read), self_metrics
            )
        yield self_metrics.expose()

    def _report(
        self,
        scheduled: ScheduledSource,
        source_read: SourceRead,
        self_metrics: Families,
    ) -> bytes:
        """Record the outcome of a read; return the text to expose."""
        is_late = source_read.is_running
        waited = time.monotonic() - source_read.started
        seconds = waited if is_late else source_read.seconds
        reason = "timeout" if is_late else source_read.reason
        message = (
            f"no response within {waited:.1f} seconds"
            if is_late
            else source_read.message
        )
        scheduled.record_outcome(reason, message)
        up = reason in ("", "error")
        self_metrics.add("keylag_exporter_source_up", up, scheduled.name)
        self_metrics.add("keylag_exporter_source_success", not reason, scheduled.name)
        self_metrics.add(
            "keylag_exporter_source_duration_seconds", seconds, scheduled.name
        )
        name = "keylag_exporter_source_read_timestamp_seconds"
        self_metrics.add(name, source_read.timestamp, scheduled.name)
        for failure, count in scheduled.failures.items():
            self_metrics.add(
                "keylag_exporter_source_failures_total", count, scheduled.name, failure
            )
        return b"" if is_late else source_read.text

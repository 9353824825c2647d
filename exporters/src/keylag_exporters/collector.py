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
from keylag_exporters.model import Metric, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keylag_exporters.model import Source

LOG = logging.getLogger("keylag_exporters")

RETRY_SECONDS = 5.0
"""After so long an unreachable source is tried again, if its interval is longer."""
DUE_SHARE = 0.9
"""A reading is due after this share of the interval: scrapes are never quite regular,
and a source that is scraped once per interval must be read each time."""
HEAD_START_SECONDS = 0.02
"""How long a reading runs before the next one starts beside it: most are over by then,
and threads that compete for Python's lock take a third more processor time."""

METRICS = (
    Metric(
        "keylag_exporter_source_up",
        "gauge",
        "Whether the latest reading reached what the source reads.",
        ("source",),
    ),
    Metric(
        "keylag_exporter_source_success",
        "gauge",
        "Whether the latest reading delivered all metrics of the source.",
        ("source",),
    ),
    Metric(
        "keylag_exporter_source_duration_seconds",
        "gauge",
        "How long the latest reading took.",
        ("source",),
    ),
    Metric(
        "keylag_exporter_source_read_timestamp_seconds",
        "gauge",
        "When the latest reading began, in Unix time (option interval).",
        ("source",),
    ),
    Metric(
        "keylag_exporter_source_failures_total",
        "counter",
        "Scrapes that failed, by reason: unreachable, timeout or error.",
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
        overdue = time.monotonic() >= latest.began + self.timeout
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
            LOG.info("%s: works again", self.name)
        self.reason = reason


class SourceRead:
    """One call of a source's `collect` in a thread of its own."""

    def __init__(self, source: Source, name: str) -> None:
        self.text = b""
        self.reason = ""
        self.message = ""
        self.timestamp = time.time()
        self.began = time.monotonic()
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
            and time.monotonic() >= self.began + DUE_SHARE * interval
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
        except Exception:  # noqa: BLE001 -- one source must not silence the others
            self.reason, self.message = "error", traceback.format_exc()
        finally:
            self.seconds = time.monotonic() - self.began


class SourceCollector:
    """Answers scrapes with the metrics of several sources."""

    def __init__(self, sources: Iterable[ScheduledSource]) -> None:
        self._sources = list(sources)
        self._lock = threading.Lock()
        self._began = -math.inf
        self._text = b""

    def expose(self, timeout: float = math.inf) -> bytes:
        """Return the metrics of all sources, and metrics about each read.

        Concurrent callers share one collection: the load stays constant when Prometheus
        gives up and scrapes again.

        `timeout` is in seconds.
        """
        asked = time.monotonic()
        with self._lock:
            if self._began < asked:
                self._began = time.monotonic()
                self._text = b"".join(self._scrape(asked + timeout))
            return self._text

    def _scrape(self, deadline: float) -> Iterator[bytes]:
        own = Families(METRICS)
        reads = []
        for one in self._sources:
            reads.append((one, one.start_if_due()))
            reads[-1][1].wait(min(deadline, time.monotonic() + HEAD_START_SECONDS))
        for one, source_read in reads:
            source_read.wait(min(deadline, source_read.began + one.timeout))
            yield self._report(one, one.read_to_report(source_read), own)
        yield own.expose()

    def _report(
        self, one: ScheduledSource, source_read: SourceRead, own: Families
    ) -> bytes:
        """Record the outcome of a read in `own`; return the text to expose."""
        late = source_read.is_running
        waited = time.monotonic() - source_read.began
        seconds = waited if late else source_read.seconds
        reason = "timeout" if late else source_read.reason
        message = (
            f"no answer within {waited:.1f} seconds" if late else source_read.message
        )
        one.record_outcome(reason, message)
        up = reason in ("", "error")
        own.add("keylag_exporter_source_up", up, one.name)
        own.add("keylag_exporter_source_success", not reason, one.name)
        own.add("keylag_exporter_source_duration_seconds", seconds, one.name)
        name = "keylag_exporter_source_read_timestamp_seconds"
        own.add(name, source_read.timestamp, one.name)
        for why, count in one.failures.items():
            own.add("keylag_exporter_source_failures_total", count, one.name, why)
        return b"" if late else source_read.text

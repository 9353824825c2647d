"""Reads every source within its own time-out, so that one silences no other.

A source is read by a scrape, at most once per interval; other scrapes get the result of
the latest reading. A failure is a result too: it is not repeated with every scrape.
A scrape that Prometheus would not wait for gets the reading before, unless the present
one has used up its own time-out.
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
from keylag_exporters.model import Declared, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keylag_exporters.model import Source

LOG = logging.getLogger("keylag_exporters")

RETRY_SECONDS = 5.0
"""After so long an unreachable source is tried again, if its interval is longer."""
EARLY = 0.9
"""A reading is due after this share of the interval: scrapes are never quite regular,
and a source that is scraped once per interval must be read each time."""
HEAD_START_SECONDS = 0.02
"""How long a reading runs before the next one starts beside it: most are over by then,
and threads that compete for Python's lock take a third more processor time."""

METRICS = (
    Declared(
        "keylag_exporter_source_up",
        "gauge",
        "Whether the latest reading reached what the source reads.",
        ("source",),
    ),
    Declared(
        "keylag_exporter_source_success",
        "gauge",
        "Whether the latest reading delivered all metrics of the source.",
        ("source",),
    ),
    Declared(
        "keylag_exporter_source_duration_seconds",
        "gauge",
        "How long the latest reading took.",
        ("source",),
    ),
    Declared(
        "keylag_exporter_source_read_timestamp_seconds",
        "gauge",
        "When the latest reading began, in Unix time (option interval).",
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
    """A source and its latest reading; a reading that hangs is never started twice."""

    name: str
    source: Source
    timeout: float
    interval: float = 0.0
    failures: dict[str, int] = field(
        default_factory=lambda: {"unreachable": 0, "timeout": 0, "error": 0}
    )
    reading: Reading | None = None
    before: Reading | None = None
    reason: str = ""

    def latest(self) -> Reading:
        """Return the latest reading; start one if it is due."""
        if self.reading is None or self.reading.is_over(self.interval):
            self.before = self.reading
            self.reading = Reading(self.source, self.name)
        return self.reading

    def result(self, latest: Reading) -> Reading:
        """Return the reading before the latest while that one may still go on."""
        overdue = time.monotonic() >= latest.began + self.timeout
        return self.before if self.before and latest.running and not overdue else latest

    def note(self, reason: str, message: str) -> None:
        """Count a failure; log it unless the previous scrape failed in the same way."""
        if reason:
            self.failures[reason] += 1
        if reason and reason != self.reason:
            LOG.warning("%s: %s: %s", self.name, reason, message)
        elif self.reason and not reason:
            LOG.info("%s: works again", self.name)
        self.reason = reason


class Reading:
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
    def running(self) -> bool:
        """Whether the source has not returned yet."""
        return self._thread.is_alive()

    def is_over(self, interval: float) -> bool:
        """Tell whether another reading is due."""
        if self.reason == "unreachable":
            interval = min(interval, RETRY_SECONDS)
        return not self.running and time.monotonic() >= self.began + EARLY * interval

    def wait(self, until: float) -> None:
        """Wait for the source, at most until a moment of the monotonic clock."""
        left = until - time.monotonic()
        self._thread.join(max(0.0, left) if math.isfinite(left) else None)

    def _run(self) -> None:
        """Collect; remember the reason of a failure, never raise."""
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
    """Answers scrapes with what several sources tell."""

    def __init__(self, sources: Iterable[Running]) -> None:
        self._sources = list(sources)
        self._lock = threading.Lock()
        self._began = -math.inf
        self._text = b""

    def expose(self, timeout: float = math.inf) -> bytes:
        """Return every source's metrics, then how each of them fared.

        Who had to wait gets what was begun meanwhile: a Prometheus that gives up and
        asks again would otherwise be answered ever later.
        """
        asked = time.monotonic()
        with self._lock:
            if self._began < asked:
                self._began = time.monotonic()
                self._text = b"".join(self._scrape(asked + timeout))
            return self._text

    def _scrape(self, deadline: float) -> Iterator[bytes]:
        own = Families(METRICS)
        readings = []
        for one in self._sources:
            readings.append((one, one.latest()))
            readings[-1][1].wait(min(deadline, time.monotonic() + HEAD_START_SECONDS))
        for one, reading in readings:
            reading.wait(min(deadline, reading.began + one.timeout))
            yield self._report(one, one.result(reading), own)
        yield own.expose()

    def _report(self, one: Running, reading: Reading, own: Families) -> bytes:
        """Note how a reading went; return what it read."""
        late = reading.running
        waited = time.monotonic() - reading.began
        seconds = waited if late else reading.seconds
        reason = "timeout" if late else reading.reason
        message = f"no answer within {waited:.1f} seconds" if late else reading.message
        one.note(reason, message)
        up = reason in ("", "error")
        own.add("keylag_exporter_source_up", up, one.name)
        own.add("keylag_exporter_source_success", not reason, one.name)
        own.add("keylag_exporter_source_duration_seconds", seconds, one.name)
        name = "keylag_exporter_source_read_timestamp_seconds"
        own.add(name, reading.timestamp, one.name)
        for why, count in one.failures.items():
            own.add("keylag_exporter_source_failures_total", count, one.name, why)
        return b"" if late else reading.text

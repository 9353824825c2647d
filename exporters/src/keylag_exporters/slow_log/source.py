"""The slow-log source: follow in the background, export on a scrape."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keylag_exporters.families import Families
from keylag_exporters.model import UnreachableError
from keylag_exporters.slow_log import position
from keylag_exporters.slow_log.classes import BUCKETS
from keylag_exporters.slow_log.digest import Digest
from keylag_exporters.slow_log.follow import Follower
from keylag_exporters.slow_log.kind import COUNTERS, METRICS
from keylag_exporters.slow_log.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client.core import Metric

    from keylag_exporters.slow_log.classes import StatementClass, Totals

LOG = logging.getLogger("keylag_exporters.slow_log")

POLL_SECONDS = 1.0
SAVE_SECONDS = 5.0
POLL_BYTES = 32 << 20
MAX_FINGERPRINT_LABEL = 500


class SlowLog:
    """Follows one log. A thread reads, `collect` reads what is left and reports."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._digest = Digest()
        self._selection = Selection(settings["top"])
        self._follower = Follower(Path(settings["file"]), self._digest)
        self._state = Path(settings["state"]) if settings["state"] else None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._missing = ""
        self._saved_bytes = -1
        if not self._resumed():
            self._follower.open(at_end=not settings["from_start"])
        self._thread = threading.Thread(target=self._run, name="slow-log", daemon=True)
        self._thread.start()

    def collect(self) -> Iterable[Metric]:
        """Return the counts of everything written so far."""
        with self._lock:
            self._poll()
            if self._missing:
                raise UnreachableError(self._missing)
            self._digest.flush()
            return self._families()

    def close(self) -> None:
        """Stop reading and save the position."""
        self._stop.set()
        self._thread.join(timeout=0.5)
        if self._lock.acquire(timeout=0.3):
            self._save()
            self._follower.close()
            self._lock.release()

    def _resumed(self) -> bool:
        """Go on where the last run stopped; False if there was none to go on from."""
        state = position.load(self._state) if self._state else None
        try:
            return state is not None and self._resume(state)
        except (KeyError, OSError, TypeError, ValueError) as error:
            LOG.warning("the saved state cannot be used: %r", error)
            return False

    def _resume(self, state: Mapping[str, Any]) -> bool:
        """Restore counts and position."""
        self._digest.restore(state["digest"])
        self._selection.restore(state["selection"], self._digest.classes)
        positions = [position.Position(*one) for one in state["positions"]]
        found = self._follower.resume(positions)
        if not found:
            LOG.warning("the log of the last run is gone: starting at the top")
            self._follower.open(at_end=False)
        return True

    def _run(self) -> None:
        """Read and save until told to stop."""
        ticks = 0
        while not self._stop.wait(POLL_SECONDS):
            ticks += 1
            with self._lock:
                self._poll()
                if ticks % (SAVE_SECONDS // POLL_SECONDS) == 0:
                    self._save()

    def _poll(self) -> None:
        """Read what is new; remember when the log cannot be read."""
        try:
            while self._follower.poll(POLL_BYTES) >= POLL_BYTES:
                if self._stop.is_set():
                    break
            self._missing = ""
        except (OSError, UnreachableError) as error:
            self._missing = str(error)

    def _save(self) -> None:
        """Write position and counts, together: neither is right without the other."""
        if self._state is None or self._follower.read_bytes == self._saved_bytes:
            return
        self._digest.flush()
        state = {
            "positions": [[one.offset, one.probe] for one in self._follower.positions],
            "digest": self._digest.as_dict(),
            "selection": self._selection.as_dict(),
        }
        try:
            position.save(self._state, state)
            self._saved_bytes = self._follower.read_bytes
        except OSError as error:
            LOG.warning("cannot save the position: %s", error)

    def _families(self) -> Iterable[Metric]:
        """Return all families of this moment."""
        families = Families(METRICS)
        chosen, rest = self._selection.choose(self._digest.classes, self._digest.total)
        for one, sums in chosen:
            _add_class(families, one, sums)
        _add_counters(families, rest, ("other", "other", "", ""))
        self._add_groups(families)
        self._add_own(families)
        return families

    def _add_groups(self, families: Families) -> None:
        """Add the histogram of each part of Keystone."""
        for (name, tag), sums in self._digest.groups.items():
            families.add_histogram(
                "keylag_slow_log_statement_duration_seconds",
                BUCKETS,
                sums.buckets,
                (sums.count, sums.query_time_us * 1e-6),
                name,
                *tag,
            )

    def _add_own(self, families: Families) -> None:
        """Add what the source says of itself."""
        digest, follower = self._digest, self._follower
        families.add("keylag_slow_log_classes", len(digest.classes))
        families.add("keylag_slow_log_forgotten_classes_total", digest.forgotten)
        families.add("keylag_slow_log_skipped_events_total", digest.skipped)
        families.add("keylag_slow_log_read_bytes_total", follower.read_bytes)
        families.add("keylag_slow_log_behind_bytes", follower.behind)
        for change, count in follower.changes.items():
            families.add("keylag_slow_log_file_changes_total", count, change)


def _add_class(families: Families, one: StatementClass, sums: Totals) -> None:
    """Add a class's counters and its fingerprint."""
    _add_counters(families, sums, (one.id, one.table_class, *one.tag))
    text = one.fingerprint.decode("utf-8", "replace")[:MAX_FINGERPRINT_LABEL]
    info = (one.id, one.table_class, text)
    families.add_once("keylag_slow_log_class_info", 1, *info)


def _add_counters(families: Families, sums: Totals, labels: tuple[str, ...]) -> None:
    """Add one sample to each counter of a class."""
    for name, field, factor, _ in COUNTERS:
        value = getattr(sums, field) * factor
        families.add(f"keylag_slow_log_{name}_total", value, *labels)

"""The slow-log source: follow in the background, export on a scrape."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keylag_exporters.families import Families
from keylag_exporters.model import UnreachableError
from keylag_exporters.settings import SettingsError
from keylag_exporters.slow_log import position
from keylag_exporters.slow_log.classes import BUCKETS, NUMBERS
from keylag_exporters.slow_log.digest import Digest
from keylag_exporters.slow_log.follow import Follower
from keylag_exporters.slow_log.kind import COUNTERS, METRICS
from keylag_exporters.slow_log.problem import Problem
from keylag_exporters.slow_log.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from keylag_exporters.slow_log.classes import StatementClass, Sums

LOG = logging.getLogger("keylag_exporters.slow_log")

POLL_SECONDS = 1.0
SAVE_SECONDS = 5.0
CHUNK_BYTES = 1 << 20
"""Read at a time: a scrape waits for two of these, however long the log is."""

MAX_FINGERPRINT_LABEL = 500

# metric, where its sum is among NUMBERS, factor
_COUNTERS = [
    (f"keylag_slow_log_{name}_total", NUMBERS.index(field), factor)
    for name, field, factor, _ in COUNTERS
]


class SlowLog:
    """Follows one log. A thread reads, `collect` reads one chunk more and reports.

    Raises SettingsError if the state cannot be kept where the settings say.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._digest = Digest()
        self._selection = Selection(settings["top"])
        self._state = Path(settings["state"]) if settings["state"] else None
        self._queue = threading.Lock()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._reading = Problem("the log can be read again")
        self._saving = Problem("the position can be saved again")
        self._saved_bytes = -1
        with self._needs_state():
            positions = self._restore()
        self._follower = Follower(Path(settings["file"]), self._digest)
        if positions:
            self._follower.resume(positions)
        else:  # without a log at the last run, all of it is new
            at_end = positions is None and not settings["from_start"]
            self._follower.open(at_end=at_end)
        with self._needs_state():
            self._save()
        self._thread = threading.Thread(target=self._run, name="slow-log", daemon=True)
        self._thread.start()

    def collect(self) -> Families:
        """Return the counts of what has been read, up to one chunk more."""
        with self._turn():
            self._poll()
            self._digest.flush()
            families = self._families()
            if self._reading.text:
                raise UnreachableError(self._reading.text, families)
            return families

    def close(self) -> None:
        """Stop reading and save the position; raises OSError if it is lost."""
        self._stop.set()
        self._thread.join(timeout=0.5)
        if not self._thread.is_alive():  # else it is saving, on a slow disk
            try:
                self._save()
            finally:
                with self._turn():
                    self._follower.close()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock, in turn: a lock alone may favour who releases it."""
        with self._queue:
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _needs_state(self) -> Iterator[None]:
        """Refuse to start without the state: position and counts would be lost."""
        try:
            yield
        except OSError as error:
            message = (
                f"slow-log: the state cannot be kept in {self._state}: "
                f"{error.strerror}. Let this user read and write that file and its "
                "folder, or name another one with --state."
            )
            raise SettingsError(message) from error

    def _restore(self) -> list[position.Position] | None:
        """Go on with the counts of the last run; return its positions, if it has any.

        A state that makes no sense is set aside, and the start is as without one.
        """
        selection = Selection(self._selection.most)
        digest = Digest()
        try:
            state = position.load(self._state) if self._state else None
            if state is None:
                return None
            digest.restore(state["digest"])
            selection.restore(state["selection"], digest.classes)
            saved = state["positions"]
            positions = saved and [position.Position(*one) for one in saved]
        except (KeyError, TypeError, ValueError) as error:
            aside = position.set_aside(self._state)  # type: ignore[arg-type]
            LOG.warning(
                "the saved state cannot be used and is now %s; reading begins as "
                "without one: %r",
                aside,
                error,
            )
            return None
        self._digest, self._selection = digest, selection
        return positions

    def _run(self) -> None:
        """Read and save until told to stop."""
        saved, taken = time.monotonic(), 0
        while not self._stop.wait(0 if taken >= CHUNK_BYTES else POLL_SECONDS):
            with self._turn():
                taken = self._poll()
            if time.monotonic() - saved >= SAVE_SECONDS:
                self._try_to_save()
                saved = time.monotonic()

    def _poll(self) -> int:
        """Read one chunk; remember when the log cannot be read. Never raise."""
        try:
            taken = self._follower.poll(CHUNK_BYTES)
        except UnreachableError as error:
            self._reading.note(str(error))
        except Exception as error:  # noqa: BLE001 -- reading must go on behind it
            self._follower.errors += 1
            self._reading.note(f"cannot count what was read: {error!r}", exc_info=error)
        else:
            self._reading.note("")
            return taken
        return 0

    def _try_to_save(self) -> None:
        """Save; a disk that is full now may have room for the next time."""
        try:
            self._save()
        except OSError as error:
            self._saving.note(f"cannot save the position: {error}")
        else:
            self._saving.note("")

    def _save(self) -> None:
        """Write position and counts, together: neither is right without the other."""
        if self._state is None:
            return
        with self._turn():
            read_bytes = self._follower.read_bytes
            if read_bytes == self._saved_bytes:
                return
            state = self._to_save()
        position.save(self._state, state)
        self._saved_bytes = read_bytes

    def _to_save(self) -> dict[str, Any]:
        """Return what the next start needs to go on."""
        self._digest.flush()
        positions = self._follower.positions
        return {
            "positions": positions and [astuple(one) for one in positions],
            "digest": self._digest.as_dict(),
            "selection": self._selection.as_dict(),
        }

    def _families(self) -> Families:
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
        families.add("keylag_slow_log_read_errors_total", follower.errors)
        families.add("keylag_slow_log_lost_files_total", follower.lost)
        families.add("keylag_slow_log_start_info", 1, follower.place)
        for column, count in digest.implausible.items():
            families.add("keylag_slow_log_implausible_events_total", count, column)
        for change, count in follower.changes.items():
            families.add("keylag_slow_log_file_changes_total", count, change)


def _add_class(families: Families, one: StatementClass, sums: Sums) -> None:
    """Add a class's counters and its fingerprint."""
    _add_counters(families, sums, (one.id, one.table_class, *one.tag))
    text = one.fingerprint.decode("utf-8", "replace")[:MAX_FINGERPRINT_LABEL]
    info = (one.id, one.table_class, text)
    families.add_once("keylag_slow_log_class_info", 1, *info)


def _add_counters(families: Families, sums: Sums, labels: tuple[str, ...]) -> None:
    """Add one sample to each counter of a class."""
    for name, place, factor in _COUNTERS:
        families.add(name, sums[place] * factor, *labels)

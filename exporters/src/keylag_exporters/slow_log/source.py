"""The slow-log source: a thread reads the log, a scrape exports the counters."""

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
from keylag_exporters.slow_log.aggregator import StatementAggregator
from keylag_exporters.slow_log.follow import Follower
from keylag_exporters.slow_log.metrics import COUNTERS, METRICS
from keylag_exporters.slow_log.problem_log import ProblemLog
from keylag_exporters.slow_log.selection import ClassSelection
from keylag_exporters.slow_log.statement_classes import BUCKETS, COUNTER_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from keylag_exporters.slow_log.statement_classes import (
        CounterValues,
        StatementClass,
    )

LOG = logging.getLogger("keylag_exporters.slow_log")

POLL_SECONDS = 1.0
SAVE_SECONDS = 5.0
POLL_BYTES = 1 << 20
"""Maximum of bytes per poll: a scrape waits for two polls, however long the log is."""

MAX_FINGERPRINT_LABEL = 500

# Metric, index in COUNTER_FIELDS, factor.
_COUNTER_COLUMNS = [
    (f"keylag_slow_log_{name}_total", COUNTER_FIELDS.index(field), factor)
    for name, field, factor, _ in COUNTERS
]


class SlowLogSource:
    """Follows one log. A thread reads; `collect` reads POLL_BYTES more.

    Raises SettingsError if the state file cannot be written or read.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._aggregator = StatementAggregator()
        self._selection = ClassSelection(settings["top"])
        self._state = Path(settings["state"]) if settings["state"] else None
        self._lock_queue = threading.Lock()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._read_problem = ProblemLog("the log is readable again")
        self._save_problem = ProblemLog("saving the position works again")
        self._saved_positions: Any = ()
        with self._require_state():
            positions = self._restore()
        self._follower = Follower(Path(settings["file"]), self._aggregator)
        if positions:
            self._follower.resume(positions)
        else:  # an empty list: there was no log at the last run, so all of it is new
            at_end = positions is None and not settings["from_start"]
            self._follower.open(at_end=at_end)
        with self._require_state():
            self._save()
        self._thread = threading.Thread(target=self._run, name="slow-log", daemon=True)
        self._thread.start()

    def collect(self) -> Families:
        """Return the counters of all bytes read, after one more poll.

        Raises UnreachableError, with the families, while the log is unreadable.
        """
        with self._locked():
            self._poll()
            self._aggregator.flush()
            families = self._families()
            if self._read_problem.current:
                raise UnreachableError(self._read_problem.current, families)
            return families

    def close(self) -> None:
        """Stop reading and save the position; raises OSError if that fails."""
        self._stop.set()
        self._thread.join(timeout=0.5)
        # A thread that still reads or saves leaves the last saved state, a valid one.
        if not self._thread.is_alive():
            try:
                self._save()
            finally:
                with self._locked():
                    self._follower.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock fairly: a plain lock favours the thread that releases it."""
        with self._lock_queue:
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _require_state(self) -> Iterator[None]:
        """Turn OSError into SettingsError: without state, counts would be lost."""
        try:
            yield
        except OSError as error:
            message = (
                f"slow-log: cannot use the state file {self._state}: {error.strerror}. "
                "Make this file and its folder readable and writable for this user, or "
                "choose another file with --state."
            )
            raise SettingsError(message) from error

    def _restore(self) -> list[position.Position] | None:
        """Restore the counters of the last run; return its positions, if any.

        An unusable state file is renamed, and the start is as without one.
        """
        selection = ClassSelection(self._selection.max_classes)
        aggregator = StatementAggregator()
        try:
            state = position.load_state(self._state) if self._state else None
            if state is None:
                return None
            aggregator.restore(state["digest"])
            selection.restore(state["selection"], aggregator.classes)
            saved = state["positions"]
            positions = saved and [position.Position(*one) for one in saved]
        except (KeyError, TypeError, ValueError) as error:
            aside = position.set_aside_state(self._state)  # type: ignore[arg-type]
            LOG.warning(
                "the saved state is unusable and was renamed to %s; starting without "
                "it: %r",
                aside,
                error,
            )
            return None
        self._aggregator, self._selection = aggregator, selection
        return positions

    def _run(self) -> None:
        saved, new_bytes = time.monotonic(), 0
        while not self._stop.wait(0 if new_bytes >= POLL_BYTES else POLL_SECONDS):
            with self._locked():
                new_bytes = self._poll()
            if time.monotonic() - saved >= SAVE_SECONDS:
                self._try_to_save()
                saved = time.monotonic()

    def _poll(self) -> int:
        """Read up to POLL_BYTES; record problems instead of raising."""
        try:
            new_bytes = self._follower.poll(POLL_BYTES)
        except UnreachableError as error:
            self._read_problem.update(str(error))
        except Exception as error:  # noqa: BLE001 -- reading continues after it
            self._follower.read_errors += 1
            self._read_problem.update(
                f"internal error while counting: {error!r}", exc_info=error
            )
        else:
            self._read_problem.update("")
            return new_bytes
        return 0

    def _try_to_save(self) -> None:
        """Save the state; log a failure, since a later attempt may succeed."""
        try:
            self._save()
        except OSError as error:
            self._save_problem.update(f"cannot save the position: {error}")
        else:
            self._save_problem.update("")

    def _save(self) -> None:
        """Write position and counters together: each is valid only with the other."""
        if self._state is None:
            return
        with self._locked():
            positions = self._follower.positions
            if positions == self._saved_positions:
                return
            state = self._state_to_save()
        position.save_state(self._state, state)
        self._saved_positions = positions

    def _state_to_save(self) -> dict[str, Any]:
        self._aggregator.flush()
        positions = self._follower.positions
        return {
            "positions": positions and [astuple(one) for one in positions],
            "digest": self._aggregator.as_dict(),
            "selection": self._selection.as_dict(),
        }

    def _families(self) -> Families:
        families = Families(METRICS)
        selected, rest = self._selection.select(
            self._aggregator.classes, self._aggregator.total
        )
        statements: dict[str, str] = {}
        for one, counters in selected:
            statement = statements.setdefault(one.id, one.readable)
            _add_class(families, one, counters, statement)
        _add_counters(families, rest, ("other", "other", "", ""))
        self._add_histograms(families)
        self._add_self_metrics(families)
        return families

    def _add_histograms(self, families: Families) -> None:
        for (name, tag), aggregate in self._aggregator.histograms.items():
            families.add_histogram(
                "keylag_slow_log_statement_duration_seconds",
                BUCKETS,
                aggregate.buckets,
                (aggregate.count, aggregate.query_time_us * 1e-6),
                name,
                *tag,
            )

    def _add_self_metrics(self, families: Families) -> None:
        aggregator, follower = self._aggregator, self._follower
        families.add("keylag_slow_log_classes", len(aggregator.classes))
        families.add(
            "keylag_slow_log_forgotten_classes_total", aggregator.forgotten_classes
        )
        families.add("keylag_slow_log_skipped_events_total", aggregator.skipped_events)
        families.add("keylag_slow_log_read_bytes_total", follower.read_bytes)
        families.add("keylag_slow_log_behind_bytes", follower.unread_bytes)
        families.add("keylag_slow_log_read_errors_total", follower.read_errors)
        families.add("keylag_slow_log_lost_files_total", follower.lost_files)
        families.add("keylag_slow_log_start_info", 1, follower.start_place)
        for column, count in aggregator.implausible_events.items():
            families.add("keylag_slow_log_implausible_events_total", count, column)
        for change, count in follower.file_changes.items():
            families.add("keylag_slow_log_file_changes_total", count, change)


def _add_class(
    families: Families,
    statement_class: StatementClass,
    counters: CounterValues,
    statement: str,
) -> None:
    _add_counters(
        families,
        counters,
        (statement_class.id, statement_class.table_class, *statement_class.tag),
    )
    text = statement_class.fingerprint.decode("utf-8", "replace")[
        :MAX_FINGERPRINT_LABEL
    ]
    info = (statement_class.id, statement_class.table_class, statement, text)
    families.add_once("keylag_slow_log_class_info", 1, *info)


def _add_counters(
    families: Families, counters: CounterValues, labels: tuple[str, ...]
) -> None:
    for name, index, factor in _COUNTER_COLUMNS:
        families.add(name, counters[index] * factor, *labels)

"""Counts the statements of a slow log by class."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from keylag_exporters.readable_sql.statement import readable_statement
from keylag_exporters.slow_log import events, sql_comment
from keylag_exporters.slow_log.events import Fields, Row
from keylag_exporters.slow_log.fingerprint import fingerprint
from keylag_exporters.slow_log.statement_classes import (
    BUCKETS,
    COLUMN_LIMITS,
    Aggregate,
    ClassKey,
    HistogramKey,
    StatementClass,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CLASSES = 20_000
MAX_CACHE_BYTES = 32 << 20
MAX_CACHED_STATEMENT_BYTES = 64 << 10
BATCH_BYTES = 1 << 20
BATCH_EVENTS = 64
"""After this many bytes, classes with this many pending rows are aggregated. The cost
of aggregating hardly depends on the number of rows."""

FLUSH_BYTES = 16 << 20
"""After this many bytes all classes are aggregated, which frees the pending rows."""

_ADMINISTRATOR_COMMAND = b"# administrator command: "

Appender = Callable[[Fields], None]


class StatementAggregator:
    """Counters of all statements, by class and in total.

    Memory is bounded: it keeps at most `max_classes` classes, while `total` and
    `histograms` include dropped ones. The statement cache is cleared when it is full.
    """

    def __init__(self, max_classes: int = MAX_CLASSES) -> None:
        self.classes: dict[ClassKey, StatementClass] = {}
        self.total = Aggregate()
        self.histograms: defaultdict[HistogramKey, Aggregate] = defaultdict(Aggregate)
        self.skipped_events = 0
        self.forgotten_classes = 0
        self.implausible_events = dict.fromkeys(COLUMN_LIMITS, 0)
        self._max_classes = max_classes
        self._tags = sql_comment.TagTable()
        self._statements: dict[str, str] = {}
        self._cache: dict[bytes, Appender] = {}
        self._cached_bytes = 0
        self._unflushed_bytes = 0
        self._unbatched_bytes = 0

    @property
    def event_count(self) -> int:
        """Events counted up to the last flush."""
        return self.total.count

    def feed(self, chunk: bytes) -> None:
        """Count a chunk that starts after a separator and ends with one."""
        with _no_garbage_collection():
            if not self._feed_fast(chunk):
                for row in events.parse_slow(chunk):
                    self._count_row(row)
            self._unflushed_bytes += len(chunk)
            self._unbatched_bytes += len(chunk)
            if self._unflushed_bytes >= FLUSH_BYTES:
                self.flush()
            elif self._unbatched_bytes >= BATCH_BYTES:
                self._aggregate(BATCH_EVENTS)

    def flush(self) -> None:
        """Aggregate all events since the last flush."""
        self._aggregate(1)
        self._unflushed_bytes = 0
        if len(self.classes) > self._max_classes:
            self._drop_classes()

    def _aggregate(self, min_events: int) -> None:
        """Aggregate the classes that have at least `min_events` pending rows."""
        for one in self.classes.values():
            if len(one.pending_rows) >= min_events:
                increase = one.flush(self.implausible_events)
                self.total.add(increase)
                self.histograms[one.histogram_key].add(increase)
        self._unbatched_bytes = 0

    def _feed_fast(self, chunk: bytes) -> bool:
        """Count a chunk of events in the usual form; else return False."""
        if b"*" in chunk and sql_comment.PREFIX in chunk:
            chunk = self._tags.number_comments(chunk)
        plain = events.strip_literals(chunk)
        rows = None if plain is None else events.parse_fast(plain)
        if rows is None:
            return False
        cache = self._cache
        for row in rows:
            try:
                cache[row[6]](row)
            except KeyError:
                self._appender_for(row[6])(row)
        return True

    def _count_row(self, row: Row | None) -> None:
        """Count one event of the slow path; None is an invalid event."""
        if row is None:
            self.skipped_events += 1
            return
        statement = row.statement
        if sql_comment.PREFIX in statement:
            statement = self._tags.number_comments(statement)
        plain = events.strip_literals(statement)
        if plain is None:
            self._get_class(statement).pending_rows.append(row)
        else:
            (self._cache.get(plain) or self._add_statement(plain))(row)

    def _appender_for(self, statement: bytes) -> Appender:
        """Return the callable that counts events with this text."""
        if statement.startswith(_ADMINISTRATOR_COMMAND) and b"\n" not in statement:
            return self._add_statement(statement, statement[2:])
        if events.is_single_statement(statement):
            return self._add_statement(statement)
        return self._reparse

    def _add_statement(self, text: bytes, statement: bytes | None = None) -> Appender:
        """Return and cache the callable that counts events of a statement."""
        append = self._get_class(statement or text).pending_rows.append
        if len(text) <= MAX_CACHED_STATEMENT_BYTES:
            self._cache_appender(text, append)
        return append

    def _reparse(self, fields: Fields) -> None:
        """Count an event that the fast path misread."""
        for row in events.parse_slow(events.to_text(Row(*fields))):
            self._count_row(row)

    def _get_class(self, statement: bytes) -> StatementClass:
        statement_class = StatementClass(
            fingerprint(statement), self._tags.tag_of(statement)
        )
        known = self.classes.setdefault(statement_class.key, statement_class)
        if known.statement is None:
            if known.id not in self._statements:
                self._statements[known.id] = readable_statement(statement)
            known.statement = self._statements[known.id]
        return known

    def _cache_appender(self, statement: bytes, append: Appender) -> None:
        """Cache a statement's callable; clear the cache at MAX_CACHE_BYTES."""
        self._cached_bytes += len(statement) + 200
        if self._cached_bytes > MAX_CACHE_BYTES:
            self._cache.clear()
            self._cached_bytes = len(statement) + 200
        self._cache[statement] = append

    def _drop_classes(self) -> None:
        """Drop the classes with the least time; keep half of `max_classes`."""
        by_query_time = sorted(
            self.classes.values(), key=lambda c: -c.aggregate.query_time_us
        )
        for one in by_query_time[self._max_classes // 2 :]:
            del self.classes[one.key]
            self.forgotten_classes += 1
        self._statements.clear()
        self._cache.clear()
        self._cached_bytes = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the saved state, as JSON types; flush first."""
        histograms = [
            [name, list(tag), t.as_dict()] for (name, tag), t in self.histograms.items()
        ]
        return {
            "buckets": list(BUCKETS),
            "classes": [one.as_dict() for one in self.classes.values()],
            "groups": histograms,
            "total": self.total.as_dict(),
            "skipped": self.skipped_events,
            "forgotten": self.forgotten_classes,
            "implausible": self.implausible_events,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a state that `as_dict` returned.

        Raises KeyError or ValueError, and changes nothing, if the format differs.
        """
        if saved["buckets"] != list(BUCKETS):
            message = "the saved histograms have different buckets"
            raise ValueError(message)
        classes = map(StatementClass.from_dict, saved["classes"])
        self.classes = {one.key: one for one in classes}
        for name, tag, aggregate in saved["groups"]:
            self.histograms[name, sql_comment.Tag(*tag)] = Aggregate(**aggregate)
        self.total = Aggregate(**saved["total"])
        self.skipped_events, self.forgotten_classes = (
            saved["skipped"],
            saved["forgotten"],
        )
        self.implausible_events |= saved.get("implausible", {})  # new in format 1
        self._cache.clear()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector: rows are never part of a reference cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

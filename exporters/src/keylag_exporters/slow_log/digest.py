"""Turn blocks of a slow log into counts for each class of statements."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from keylag_exporters.slow_log import comment, events
from keylag_exporters.slow_log.classes import StatementClass, Totals
from keylag_exporters.slow_log.events import Row
from keylag_exporters.slow_log.fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CLASSES = 20_000
MAX_CACHE_BYTES = 32 << 20
MAX_KEY_BYTES = 64 << 10
FLUSH_BYTES = 2 << 20
"""After so much text the waiting events are summed, and their memory is free."""

_COMMAND = b"# administrator command: "

Append = Callable[[tuple[bytes, ...]], None]


class Digest:
    """Counts of everything fed so far.

    Memory is bounded: at most `max_classes` classes are kept, those beyond are
    summed in `folded`; the cache of statements is emptied when it is full.
    """

    def __init__(self, max_classes: int = MAX_CLASSES) -> None:
        self.classes: dict[tuple[str, comment.Tag], StatementClass] = {}
        self.folded = Totals()
        self.events = 0
        self.skipped = 0
        self._max_classes = max_classes
        self._tags = comment.Tags()
        self._cache: dict[bytes, Append] = {}
        self._cached_bytes = 0
        self._waiting = 0

    def feed(self, block: bytes) -> None:
        """Count a block of whole events: it starts after a separator, ends with one."""
        with _no_garbage_collection():
            if not self._feed_fast(block):
                for row in events.one_by_one(block):
                    self._count_one(row)
            self._waiting += len(block)
            if self._waiting >= FLUSH_BYTES:
                self.flush()

    def flush(self) -> None:
        """Sum what was counted since the last flush."""
        for one in self.classes.values():
            one.flush()
        self._waiting = 0
        if len(self.classes) > self._max_classes:
            self._fold()

    def _feed_fast(self, block: bytes) -> bool:
        """Count a block whose events are all of the usual form; else do nothing."""
        if b"*" in block and comment.MARK in block:
            block = self._tags.shorten(block)
        plain = events.without_literals(block)
        rows = None if plain is None else events.findall(plain)
        if rows is None:
            return False
        self.events += len(rows)
        cache = self._cache
        for row in rows:
            try:
                cache[row[6]](row)
            except KeyError:
                self._append_for(row[6])(row)
        return True

    def _count_one(self, row: Row | None) -> None:
        """Count one event that was read by itself."""
        if row is None:
            self.skipped += 1
            return
        self.events += 1
        statement = row.statement
        if comment.MARK in statement:
            statement = self._tags.shorten(statement)
        plain = events.without_literals(statement)
        if plain is None:
            self._class_of(statement).pending.append(row)
        else:
            (self._cache.get(plain) or self._append_for(plain))(row)

    def _append_for(self, statement: bytes) -> Append:
        """Return what takes the events of a statement, and remember it."""
        if statement.startswith(_COMMAND) and b"\n" not in statement:
            append = self._class_of(statement[2:]).pending.append
        elif events.is_statement(statement):
            append = self._class_of(statement).pending.append
        else:
            return self._look_again
        if len(statement) <= MAX_KEY_BYTES:
            self._remember(statement, append)
        return append

    def _look_again(self, fields: tuple[bytes, ...]) -> None:
        """Count an event that only looked like one of the usual form."""
        self.events -= 1
        for row in events.unusual(events.text_of(Row(*fields))):
            self._count_one(row)

    def _class_of(self, statement: bytes) -> StatementClass:
        """Return the class of a statement, a new one if it is the first."""
        made = StatementClass(fingerprint(statement), self._tags.of(statement))
        return self.classes.setdefault(made.key, made)

    def _remember(self, statement: bytes, append: Append) -> None:
        """Keep the way from a statement to its class, in bounded memory."""
        self._cached_bytes += len(statement) + 200
        if self._cached_bytes > MAX_CACHE_BYTES:
            self._cache.clear()
            self._cached_bytes = len(statement) + 200
        self._cache[statement] = append

    def _fold(self) -> None:
        """Sum the half of the classes that took least time, and forget them."""
        order = sorted(
            self.classes.values(), key=lambda one: one.totals.query_time_seconds_sum
        )
        for one in order[: len(order) // 2]:
            self.folded.add(one.totals)
            del self.classes[one.key]
        self._cache.clear()
        self._cached_bytes = 0


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep the collector from walking the rows: none of them can be in a cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

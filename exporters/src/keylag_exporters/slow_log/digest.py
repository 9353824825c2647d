"""Turn blocks of a slow log into counts for each class of statements."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from keylag_exporters.slow_log import comment, events
from keylag_exporters.slow_log.classes import (
    BUCKETS,
    LIMITS,
    Group,
    Key,
    StatementClass,
    Totals,
)
from keylag_exporters.slow_log.events import Fields, Row
from keylag_exporters.slow_log.fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CLASSES = 20_000
MAX_CACHE_BYTES = 32 << 20
MAX_KEY_BYTES = 64 << 10
BATCH_BYTES = 1 << 20
BATCH_EVENTS = 64
"""After so much text, classes with so many events waiting are summed: summing a few
events costs as much as summing many."""

FLUSH_BYTES = 16 << 20
"""After so much text all classes are summed, and the memory of the events is free."""

_COMMAND = b"# administrator command: "

Append = Callable[[Fields], None]


class Digest:
    """Counts of everything fed so far.

    Memory is bounded: at most `max_classes` classes are kept, of those beyond only
    `total` and `groups` know; the cache of statements is emptied when it is full.
    """

    def __init__(self, max_classes: int = MAX_CLASSES) -> None:
        self.classes: dict[Key, StatementClass] = {}
        self.total = Totals()
        self.groups: defaultdict[Group, Totals] = defaultdict(Totals)
        self.skipped = 0
        self.forgotten = 0
        self.implausible = dict.fromkeys(LIMITS, 0)
        self._max_classes = max_classes
        self._tags = comment.Tags()
        self._cache: dict[bytes, Append] = {}
        self._cached_bytes = 0
        self._waiting = 0
        self._fresh = 0

    @property
    def events(self) -> int:
        """Events counted up to the last flush."""
        return self.total.count

    def feed(self, block: bytes) -> None:
        """Count a block of whole events: it starts after a separator, ends with one."""
        with _no_garbage_collection():
            if not self._feed_fast(block):
                for row in events.one_by_one(block):
                    self._count_one(row)
            self._waiting += len(block)
            self._fresh += len(block)
            if self._waiting >= FLUSH_BYTES:
                self.flush()
            elif self._fresh >= BATCH_BYTES:
                self._sum(BATCH_EVENTS)

    def flush(self) -> None:
        """Sum what was counted since the last flush."""
        self._sum(1)
        self._waiting = 0
        if len(self.classes) > self._max_classes:
            self._forget()

    def _sum(self, least: int) -> None:
        """Sum the classes that have so many events waiting."""
        for one in self.classes.values():
            if len(one.pending) >= least:
                more = one.flush(self.implausible)
                self.total.add(more)
                self.groups[one.group].add(more)
        self._fresh = 0

    def _feed_fast(self, block: bytes) -> bool:
        """Count a block whose events are all of the usual form; else do nothing."""
        if b"*" in block and comment.MARK in block:
            block = self._tags.shorten(block)
        plain = events.without_literals(block)
        rows = None if plain is None else events.findall(plain)
        if rows is None:
            return False
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
        statement = row.statement
        if comment.MARK in statement:
            statement = self._tags.shorten(statement)
        plain = events.without_literals(statement)
        if plain is None:
            self._class_of(statement).pending.append(row)
        else:
            (self._cache.get(plain) or self._learn(plain))(row)

    def _append_for(self, statement: bytes) -> Append:
        """Return what takes the events of a text that the fast way found."""
        if statement.startswith(_COMMAND) and b"\n" not in statement:
            return self._learn(statement, statement[2:])
        if events.is_statement(statement):
            return self._learn(statement)
        return self._look_again

    def _learn(self, text: bytes, statement: bytes | None = None) -> Append:
        """Return what takes the events of a statement, and remember it."""
        append = self._class_of(statement or text).pending.append
        if len(text) <= MAX_KEY_BYTES:
            self._remember(text, append)
        return append

    def _look_again(self, fields: Fields) -> None:
        """Count an event that only looked like one of the usual form."""
        for row in events.one_by_one(events.text_of(Row(*fields))):
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

    def _forget(self) -> None:
        """Forget the classes that took least time, so that half the room is free."""
        by_time = sorted(self.classes.values(), key=lambda c: -c.totals.query_time_us)
        for one in by_time[self._max_classes // 2 :]:
            del self.classes[one.key]
            self.forgotten += 1
        self._cache.clear()
        self._cached_bytes = 0

    def as_dict(self) -> dict[str, Any]:
        """Return what a restart needs to go on counting; flush first."""
        groups = [
            [name, list(tag), t.as_dict()] for (name, tag), t in self.groups.items()
        ]
        return {
            "buckets": list(BUCKETS),
            "classes": [one.as_dict() for one in self.classes.values()],
            "groups": groups,
            "total": self.total.as_dict(),
            "skipped": self.skipped,
            "forgotten": self.forgotten,
            "implausible": self.implausible,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on counting from what `as_dict` returned.

        Raises ValueError or KeyError, and changes nothing, if another version did.
        """
        if saved["buckets"] != list(BUCKETS):
            message = "its histograms have other buckets"
            raise ValueError(message)
        classes = map(StatementClass.from_dict, saved["classes"])
        self.classes = {one.key: one for one in classes}
        for name, tag, totals in saved["groups"]:
            self.groups[name, comment.Tag(*tag)] = Totals(**totals)
        self.total = Totals(**saved["total"])
        self.skipped, self.forgotten = saved["skipped"], saved["forgotten"]
        self.implausible |= saved.get("implausible", {})  # new in format 1
        self._cache.clear()


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

"""Splits a stream of bytes into whole events and feeds them to an aggregator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keylag_exporters.slow_log.events import SEPARATOR

if TYPE_CHECKING:
    from keylag_exporters.slow_log.aggregator import StatementAggregator

CHUNK_BYTES = 64 << 10
"""Size of a read; a chunk and the rows made of it fit in the processor's cache."""
MAX_EVENT_BYTES = 64 << 20
_CRLF_SEPARATOR = b";\r\n#"
_HEADER_ENDS = (b"SET timestamp=", b"SET last_insert_id=", b"SET insert_id=", b"use ")
_OVERLAP = len(_CRLF_SEPARATOR) - 1


class EventSplitter:
    """Buffers bytes until they form whole events.

    `buffered_bytes` are taken but not counted yet: a restart resumes that many bytes
    before the current offset.
    """

    def __init__(self, aggregator: StatementAggregator) -> None:
        self.aggregator = aggregator
        self.buffered_bytes = 0
        self._buffer: list[bytes] = []
        self._discarding = False

    def write(self, data: bytes) -> None:
        """Buffer bytes and count the events that they complete."""
        start = b"".join(piece[-_OVERLAP:] for piece in self._buffer[-_OVERLAP:])
        start = start[-_OVERLAP:] + data[:_OVERLAP]
        self._buffer.append(data)
        self.buffered_bytes += len(data)
        if _has_separator(data) or _has_separator(start):
            self._feed_complete_events()
        elif self.buffered_bytes > MAX_EVENT_BYTES:
            self._discard_overlong()

    def finish(self) -> None:
        """Count the buffered bytes as the last event, complete or not."""
        text = b"".join(self._buffer).replace(b";\r\n", b";\n")
        text = text[:-1] if text.endswith(b";\n\n") else text
        self._buffer, self.buffered_bytes = [], 0
        if text.strip():
            self._feed(text.removesuffix(b";\n") + SEPARATOR)
        self._discarding = False

    @property
    def ends_with_event(self) -> bool:
        """Whether the buffer seems to end with a complete event."""
        tail = b"".join(self._buffer[-_OVERLAP:])
        if not tail.endswith((b";\n", b";\r\n")):
            return False
        text = b"".join(self._buffer)
        return not _is_header(text, len(text) - len(b";\n"))

    def _feed_complete_events(self) -> None:
        """Feed everything up to the last separator."""
        text = b"".join(self._buffer)
        end = _rfind_separator(text, len(text))
        if end > 0 and _is_header(text, end):
            end = _rfind_separator(text, end)
        if end < 0:
            return
        end = text.index(b"#", end)
        self._buffer = [text[end:]]
        self.buffered_bytes = len(text) - end
        self._feed(text[: end + 1])

    def _discard_overlong(self) -> None:
        """Discard an event above MAX_EVENT_BYTES, to bound memory."""
        self._discarding = True
        last = self._buffer[-1][-_OVERLAP:]
        self._buffer, self.buffered_bytes = [last], len(last)

    def _feed(self, chunk: bytes) -> None:
        """Feed a chunk of whole events; each but the first follows a separator."""
        if self._discarding:
            self._discarding = False
            self.aggregator.skipped_events += 1
            chunk = chunk[_second_event(chunk) :]
        if b"\r" in chunk and _CRLF_SEPARATOR in chunk:
            chunk = chunk.replace(b"\r\n", b"\n")
        if chunk:
            self.aggregator.feed(chunk)


def _has_separator(data: bytes) -> bool:
    """Return whether an event ends within these bytes."""
    return SEPARATOR in data or (b"\r" in data and _CRLF_SEPARATOR in data)


def _rfind_separator(text: bytes, before: int) -> int:
    """Return the offset of the last separator before an offset, or -1."""
    end = text.rfind(SEPARATOR, 0, before)
    return max(end, text.rfind(_CRLF_SEPARATOR, 0, before)) if b"\r" in text else end


def _is_header(text: bytes, end: int) -> bool:
    """Return whether a text ends within an event, before its statement.

    A separator there ends no event, since commands begin with a hash. A USE statement
    also looks like a header and so waits for the next event.
    """
    return text.startswith(_HEADER_ENDS, text.rfind(b"\n", 0, end) + 1)


def _second_event(chunk: bytes) -> int:
    """Return the offset of the second event of a chunk."""
    found = [
        at for at in (chunk.find(SEPARATOR), chunk.find(_CRLF_SEPARATOR)) if at >= 0
    ]
    return chunk.index(b"#", min(found))

"""Reads the latencies in a log of HdrHistogram, which YCSB writes once a second.

A line has the start and the length of an interval in seconds, its longest latency, and
a histogram of latencies in µs: version 2 of the encoding, compressed.
"""

import base64
import math
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from keylag.lab.neighbours.window import Window

LOG_START: Final = re.compile(r"#\[StartTime: ([0-9.]+)")
INTERVAL: Final = re.compile(r"^([0-9.]+),([0-9.]+),[0-9.]+,(\S+)$", re.MULTILINE)
COMPRESSED: Final = struct.Struct(">ii")
"""Cookie and length."""
COMPRESSED_COOKIE: Final = 0x1C849304
HEADER: Final = struct.Struct(">iiiiqqd")
"""Cookie, length, offset of indexes, digits, lowest value, highest value, ratio."""
COOKIE_MASK: Final = ~0xF0
WIDEST_BYTES: Final = 9
"""Of a number: its last byte has eight bits of it, all others have seven."""
LOW_BITS: Final = 0x7F
"""Of a byte of a number; its highest bit says that another one follows."""
US_PER_SECOND: Final = 1e6


@dataclass(frozen=True)
class Latencies:
    """Latencies of operations in a time."""

    seconds: float
    """How long this time is."""
    counts: Counter[int]
    """Operations by their latency in µs, as exact as the histogram is."""

    @property
    def per_second(self) -> float:
        """Operations per second."""
        return self.counts.total() / self.seconds

    def quantile_seconds(self, share: float) -> float:
        """Return the latency that a share of all does not exceed; NaN without any."""
        left = share * self.counts.total()
        for value, count in sorted(self.counts.items()):
            left -= count
            if left <= 0:
                return value / US_PER_SECOND
        return math.nan


def read(text: str, window: Window) -> Latencies:
    """Return the latencies of the intervals that are within a window.

    Raises ValueError if there are none, or the log is damaged.
    """
    seconds, counts = 0.0, Counter[int]()
    for interval, histogram in _intervals(text):
        if window.holds(interval):
            counts += decode(histogram)
            seconds += interval.seconds
    if not seconds:
        message = "its log has no interval in this time"
        raise ValueError(message)
    return Latencies(seconds, counts)


def _intervals(text: str) -> Iterator[tuple[Window, str]]:
    """Yield each interval with its histogram; the last line may be incomplete."""
    begun = LOG_START.search(text)
    offset = float(begun[1]) if begun else 0.0
    for start, length, histogram in INTERVAL.findall(text.rpartition("\n")[0]):
        first = offset + float(start)
        yield Window(first, first + float(length)), histogram


def decode(encoded: str) -> Counter[int]:
    """Return the counts of a histogram by value; raises ValueError if it is damaged."""
    try:
        packed = base64.b64decode(encoded)
        cookie, _ = COMPRESSED.unpack_from(packed)
        data = zlib.decompress(packed[COMPRESSED.size :])
        _, length, _, digits, lowest, _, _ = HEADER.unpack_from(data)
    except (ValueError, struct.error, zlib.error) as error:
        message = f"a histogram is damaged: {error}"
        raise ValueError(message) from error
    if cookie & COOKIE_MASK != COMPRESSED_COOKIE:
        message = f"a histogram has the unknown version {cookie:#x}"
        raise ValueError(message)
    scale = _Scale(digits, lowest)
    counts, index = Counter[int](), 0
    for number in _numbers(data[HEADER.size : HEADER.size + length]):
        if number < 0:
            index -= number
        else:
            counts[scale.value(index)] += number
            index += 1
    return counts


class _Scale:
    """The values of the counts: in each power of two, equal steps."""

    def __init__(self, digits: int, lowest: int) -> None:
        self._unit_bits = lowest.bit_length() - 1
        self._half_bits = (2 * int(10**digits) - 1).bit_length() - 1

    def value(self, index: int) -> int:
        """Return the lowest value that a count has."""
        half = 1 << self._half_bits
        bucket = (index >> self._half_bits) - 1
        step = (index & (half - 1)) + half
        if bucket < 0:
            bucket, step = 0, step - half
        return step << (bucket + self._unit_bits)


def _numbers(data: bytes) -> Iterator[int]:
    """Yield numbers of variable length; a negative one is a run of empty counts."""
    number = size = 0
    for byte in data:
        is_widest = size == WIDEST_BYTES - 1
        number |= (byte if is_widest else byte & LOW_BITS) << (7 * size)
        size += 1
        if is_widest or byte <= LOW_BITS:
            yield (number >> 1) ^ -(number & 1)
            number = size = 0

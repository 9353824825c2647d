"""Parses OSProfiler's points; each has a start and a stop notification."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from keylag.trace.model import RawSpan, Trace, TraceError, build_trace

Notification = Mapping[str, Any]
"""Has the keys name, base_id, trace_id, parent_id, timestamp and info."""

_RAW_PREFIX: Final = "meta.raw_payload."
_START_SUFFIX: Final = "-start"
_STOP_SUFFIX: Final = "-stop"
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - its timestamps are naive UTC


def parse_report(report: Mapping[str, Any], trace_id: str, source: str) -> Trace:
    """Parse a report of a driver's `get_report` or of `osprofiler trace show`.

    Uses the times of its notifications, in microseconds; its own times are in whole
    milliseconds.  Raises TraceError for an invalid report.
    """
    return parse_notifications(_raw_notifications(report), trace_id, source)


def parse_notifications(
    notifications: Iterable[Notification], trace_id: str, source: str
) -> Trace:
    """Pair the notifications of a trace; a point without a stop has no duration.

    Raises TraceError for invalid notifications.
    """
    points: dict[str, list[Notification]] = {}
    for one in notifications:
        points.setdefault(one["trace_id"], []).append(one)
    try:
        raw_spans = [_raw_span(point) for point in points.values()]
    except (KeyError, ValueError, TypeError) as error:
        message = f"{source} is not a trace of OSProfiler: {error!r}."
        raise TraceError(message) from error
    return build_trace(raw_spans, trace_id, source)


def _raw_notifications(report: Mapping[str, Any]) -> Iterator[Notification]:
    for child in report.get("children", ()):
        for name, value in child["info"].items():
            if name.startswith(_RAW_PREFIX):
                yield value
        yield from _raw_notifications(child)


def _raw_span(point: list[Notification]) -> RawSpan:
    first = next(
        (one for one in point if one["name"].endswith(_START_SUFFIX)), point[0]
    )
    last = next((one for one in point if one["name"].endswith(_STOP_SUFFIX)), first)
    return RawSpan(
        id=first["trace_id"],
        parent=first["parent_id"],
        name=first["name"].removesuffix(_START_SUFFIX).removesuffix(_STOP_SUFFIX),
        start=_nanoseconds(first["timestamp"]),
        end=_nanoseconds(last["timestamp"]),
        attributes=dict(_flatten({**first.get("info", {}), **last.get("info", {})})),
    )


def _nanoseconds(timestamp: str) -> int:
    since = datetime.fromisoformat(timestamp) - _EPOCH
    return since // timedelta(microseconds=1) * 1000


def _flatten(info: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the items of nested mappings by dotted names."""
    for name, value in info.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value

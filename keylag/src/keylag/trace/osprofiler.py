"""OSProfiler's points: two notifications each, told apart by the end of their name."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from keylag.trace.model import Node, Trace, TraceError, grown

Notification = Mapping[str, Any]
"""As a driver is given it: name, base_id, trace_id, parent_id, timestamp, info."""

_RAW: Final = "meta.raw_payload."
_START: Final = "-start"
_STOP: Final = "-stop"
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as its timestamps are


def of_report(report: Mapping[str, Any], trace_id: str, source: str) -> Trace:
    """Read a report, as drivers' `get_report` and `osprofiler trace show` give it.

    Its own times are whole milliseconds; those of the notifications that it
    carries are microseconds.
    """
    return of_notifications(_raw(report), trace_id, source)


def of_notifications(
    notifications: Iterable[Notification], trace_id: str, source: str
) -> Trace:
    """Pair the notifications of a trace; a point that never ended took no time."""
    points: dict[str, list[Notification]] = {}
    for one in notifications:
        points.setdefault(one["trace_id"], []).append(one)
    try:
        nodes = [_node(point) for point in points.values()]
    except (KeyError, ValueError, TypeError) as error:
        message = f"{source} is no trace of OSProfiler's: {error!r}."
        raise TraceError(message) from error
    return grown(nodes, trace_id, source)


def _raw(report: Mapping[str, Any]) -> Iterator[Notification]:
    """Give the notifications of all points below."""
    for child in report.get("children", ()):
        for name, value in child["info"].items():
            if name.startswith(_RAW):
                yield value
        yield from _raw(child)


def _node(point: list[Notification]) -> Node:
    first = next((one for one in point if one["name"].endswith(_START)), point[0])
    last = next((one for one in point if one["name"].endswith(_STOP)), first)
    return Node(
        id=first["trace_id"],
        parent=first["parent_id"],
        name=first["name"].removesuffix(_START).removesuffix(_STOP),
        start=_nanoseconds(first["timestamp"]),
        end=_nanoseconds(last["timestamp"]),
        attributes=dict(_flat({**first.get("info", {}), **last.get("info", {})})),
    )


def _nanoseconds(timestamp: str) -> int:
    since = datetime.fromisoformat(timestamp) - _EPOCH
    return since // timedelta(microseconds=1) * 1000


def _flat(info: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Give what is in nested dictionaries by dotted names."""
    for name, value in info.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value

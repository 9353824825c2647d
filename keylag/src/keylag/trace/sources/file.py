"""Reads files of `osprofiler trace show --json` and of the Collector's file exporter.

The first is one JSON object; the second has one JSON object on each line.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from keylag.trace.model import Trace, TraceError
from keylag.trace.osprofiler import parse_report
from keylag.trace.otlp import iter_spans, otel_trace_id, parse_resource_spans

_SPACE: Final = re.compile(r"\s*")


def read(path: Path, trace_id: str) -> Trace:
    """Read the trace with this id; without an id, the only trace of the file.

    Raises TraceError if the file is invalid or lacks the trace.
    """
    try:
        text = path.read_text(encoding="utf-8")
        objects = list(_parse_objects(text))
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read as JSON: {error}"
        raise TraceError(message) from error
    if len(objects) == 1 and "children" in objects[0]:
        return parse_report(objects[0], trace_id or _base_id(objects[0]), str(path))
    return _read_otlp(objects, trace_id, path)


def _parse_objects(text: str) -> Iterator[dict[str, Any]]:
    decoder, position = json.JSONDecoder(), _end_of_space(text, 0)
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
        except ValueError:
            # The Collector may still be writing its last line.
            if position and "\n" not in text[position:]:
                return
            raise
        if not isinstance(value, dict):
            message = "not a JSON object"
            raise ValueError(message)  # noqa: TRY004 - like the decoder's errors
        position = _end_of_space(text, end)
        yield value


def _end_of_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _base_id(report: Mapping[str, Any]) -> str:
    # Only the notifications in a report have the id of the trace.
    for child in report["children"]:
        for value in child["info"].values():
            if isinstance(value, Mapping):
                return str(value.get("base_id", ""))
    return ""


def _read_otlp(objects: list[dict[str, Any]], trace_id: str, path: Path) -> Trace:
    groups = [group for one in objects for group in one.get("resourceSpans", ())]
    try:
        ids = dict.fromkeys(span["traceId"] for span in iter_spans(groups))
    except (KeyError, TypeError) as error:
        message = f"{path} is neither OSProfiler nor OTLP JSON: {error!r} is missing."
        raise TraceError(message) from error
    chosen = otel_trace_id(trace_id) or (next(iter(ids)) if len(ids) == 1 else "")
    if not chosen:
        message = (
            f"{path} has {len(ids)} traces. Choose one of: {', '.join(ids) or '-'}"
        )
        raise TraceError(message)
    return parse_resource_spans(
        [_filter_spans(one, chosen) for one in groups], chosen, str(path)
    )


def _filter_spans(group: Mapping[str, Any], trace_id: str) -> dict[str, Any]:
    spans = [span for span in iter_spans([group]) if span["traceId"] == trace_id]
    return {**group, "scopeSpans": [{"spans": spans}]}

"""A file: what `osprofiler trace show --json` prints, or the Collector's file exporter.

The one is a JSON object, the other has one on each line.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keylag.trace.model import Trace, TraceError
from keylag.trace.osprofiler import of_report
from keylag.trace.otlp import of_resource_spans, otel_id, spans_of


def read(path: Path, trace_id: str) -> Trace:
    """Read the trace of this id, or the only one."""
    try:
        text = path.read_text(encoding="utf-8")
        found = list(_objects(text))
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read as JSON: {error}"
        raise TraceError(message) from error
    if len(found) == 1 and "children" in found[0]:
        return of_report(found[0], trace_id or _base_id(found[0]), str(path))
    return _of_otlp(found, trace_id, path)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Give the objects of a text, whatever blanks are between them."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text.rstrip()):
        found, place = decoder.raw_decode(text, place)
        if not isinstance(found, dict):
            message = "it is no object"
            raise ValueError(message)  # noqa: TRY004 - as the decoder's own
        place += len(text[place:]) - len(text[place:].lstrip())
        yield found


def _base_id(report: Mapping[str, Any]) -> str:
    """Return the trace's id, which only the notifications in a report tell."""
    for child in report["children"]:
        for value in child["info"].values():
            if isinstance(value, Mapping):
                return str(value.get("base_id", ""))
    return ""


def _of_otlp(found: list[dict[str, Any]], trace_id: str, path: Path) -> Trace:
    groups = [group for one in found for group in one.get("resourceSpans", ())]
    try:
        ids = dict.fromkeys(span["traceId"] for span in spans_of(groups))
    except (KeyError, TypeError) as error:
        message = f"{path} is neither OSProfiler's nor OTLP's: {error!r} is missing."
        raise TraceError(message) from error
    wanted = otel_id(trace_id) or (next(iter(ids)) if len(ids) == 1 else "")
    if not wanted:
        message = f"{path} has {len(ids)} traces. Name one of: {', '.join(ids) or '-'}"
        raise TraceError(message)
    return of_resource_spans([_only(one, wanted) for one in groups], wanted, str(path))


def _only(group: Mapping[str, Any], trace_id: str) -> dict[str, Any]:
    """Return a resource with its spans of one trace."""
    chosen = [span for span in spans_of([group]) if span["traceId"] == trace_id]
    return {**group, "scopeSpans": [{"spans": chosen}]}

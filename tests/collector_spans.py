"""Reads the spans that the stack's Collector wrote to its file."""

import json
from collections.abc import Iterator
from typing import Any

from keylag.services.otel_collector import traces_file
from keylag.stack import Stack


def spans(stack: Stack, trace: str) -> Iterator[dict[str, Any]]:
    """Yield the written spans of a trace, with the name of their service."""
    file = traces_file(stack.folder)
    text = file.read_text() if file.exists() else ""
    # The Collector may still be writing what is after the last end of a line.
    for line in text.rpartition("\n")[0].splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    if span["traceId"] == trace:
                        yield {**span, "service": attribute(resource["resource"])}


def attribute(span: dict[str, Any], name: str = "service.name") -> Any:
    """Return the value of an attribute of a span or resource; None if missing."""
    found = (each["value"] for each in span["attributes"] if each["key"] == name)
    return next((next(iter(value.values())) for value in found), None)

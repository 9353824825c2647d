"""OpenTelemetry's spans as OTLP has them in JSON."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import requests

from keylag.errors import root_cause
from keylag.trace.model import Node, Trace, TraceError, grown

ANSWER_SECONDS: Final = 30


def otel_id(trace_id: str) -> str:
    """Return a trace's id as OpenTelemetry writes it; OSProfiler's are UUIDs."""
    return trace_id.replace("-", "").lower()


def ask(url: str, path: str) -> Any:
    """Return the JSON that a server keeps; {} where it knows of none.

    Raises TraceError where it cannot be asked.
    """
    try:
        answer = requests.get(
            f"{url.rstrip('/')}{path}",
            headers={"Accept": "application/json"},
            timeout=ANSWER_SECONDS,
        )
        if answer.status_code == requests.codes.not_found:
            return {}
        answer.raise_for_status()
        return answer.json()
    except (requests.RequestException, ValueError) as error:
        message = f"{url} does not give its traces: {root_cause(error)}."
        raise TraceError(message) from error


def of_resource_spans(
    groups: Iterable[Mapping[str, Any]], trace_id: str, source: str
) -> Trace:
    """Read the `resourceSpans` of one trace."""
    try:
        nodes = [_node(group, span) for group in groups for span in spans_of([group])]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        message = f"{source} is no trace in OTLP's form: {error!r}."
        raise TraceError(message) from error
    return grown(nodes, trace_id, source)


def spans_of(groups: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Give the spans of all resources and scopes."""
    for group in groups:
        for scope in group["scopeSpans"]:
            yield from scope["spans"]


def _node(group: Mapping[str, Any], span: Mapping[str, Any]) -> Node:
    return Node(
        id=span["spanId"],
        parent=span.get("parentSpanId", ""),
        name=span["name"],
        start=int(span["startTimeUnixNano"]),
        end=int(span["endTimeUnixNano"]),
        attributes={**_attributes(group.get("resource", {})), **_attributes(span)},
    )


def _attributes(of: Mapping[str, Any]) -> dict[str, Any]:
    return {
        one["key"]: next(iter(one["value"].values()), "")
        for one in of.get("attributes", ())
    }

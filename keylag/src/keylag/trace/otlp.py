"""Parses OpenTelemetry's spans in OTLP JSON."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import requests

from keylag.errors import root_cause
from keylag.location import split_credentials
from keylag.trace.model import RawSpan, Trace, TraceError, build_trace

TIMEOUT_SECONDS: Final = 30


def otel_trace_id(trace_id: str) -> str:
    """Return a trace id in OpenTelemetry's format; OSProfiler's ids are UUIDs."""
    return trace_id.replace("-", "").lower()


def get_json(url: str, path: str) -> Any:
    """Return the JSON document at a path; {} if the response is 404.

    Raises TraceError if the request fails or the response is not JSON.
    """
    bare, credentials = split_credentials(url)
    try:
        response = requests.get(
            f"{bare.rstrip('/')}{path}",
            auth=credentials,
            headers={"Accept": "application/json"},
            timeout=TIMEOUT_SECONDS,
        )
        if response.status_code == requests.codes.not_found:
            return {}
        response.raise_for_status()
        return response.json()
    except (requests.RequestException, ValueError) as error:
        message = f"Traces cannot be read from {bare}: {root_cause(error)}."
        raise TraceError(message) from error


def parse_resource_spans(
    groups: Iterable[Mapping[str, Any]], trace_id: str, source: str
) -> Trace:
    """Parse the `resourceSpans` of one trace; raises TraceError if invalid."""
    try:
        raw_spans = [
            _raw_span(group, span) for group in groups for span in iter_spans([group])
        ]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        message = f"{source} is not a trace in OTLP JSON: {error!r}."
        raise TraceError(message) from error
    return build_trace(raw_spans, trace_id, source)


def iter_spans(groups: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the spans of all resources and scopes."""
    for group in groups:
        for scope in group["scopeSpans"]:
            yield from scope["spans"]


def _raw_span(group: Mapping[str, Any], span: Mapping[str, Any]) -> RawSpan:
    return RawSpan(
        id=span["spanId"],
        parent=span.get("parentSpanId", ""),
        name=span["name"],
        start=int(span["startTimeUnixNano"]),
        end=int(span["endTimeUnixNano"]),
        attributes={**_attributes(group.get("resource", {})), **_attributes(span)},
    )


def _attributes(owner: Mapping[str, Any]) -> dict[str, Any]:
    return {
        one["key"]: next(iter(one["value"].values()), "")
        for one in owner.get("attributes", ())
    }

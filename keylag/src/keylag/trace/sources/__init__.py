"""Reads traces from their storage: one module for each kind of location."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from keylag.trace.model import METHOD, Trace, TraceError
from keylag.trace.sources import driver, file, jaeger, sqlalchemy, tempo

TraceReader = Callable[[str, str], Trace]
"""Takes location and trace id, returns the trace; raises TraceError."""

SOURCES: Final[Mapping[str, TraceReader]] = {
    "redis": driver.read,
    "redissentinel": driver.read,
    "elasticsearch": driver.read,
    "mongodb": driver.read,
    "mysql": sqlalchemy.read,
    "mysql+pymysql": sqlalchemy.read,
    "tempo+http": tempo.read,
    "tempo+https": tempo.read,
    "jaeger+http": jaeger.read,
    "jaeger+https": jaeger.read,
}
"""Readers by the scheme of a location; a location without a scheme is a file."""

TRACE_TIMEOUT_SECONDS: Final = 30.0
"""How long a trace may take to arrive in its storage after the response."""


def read_complete(
    location: str, trace_id: str, timeout_seconds: float = TRACE_TIMEOUT_SECONDS
) -> Trace:
    """Wait until the trace of one request is complete, and read it.

    Keystone exports it after the response.  Raises TraceError as `read_trace` does, or
    if the trace is incomplete after `timeout_seconds`.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            trace = read_trace(location, trace_id)
            if _is_complete(trace):
                return trace
            problem = TraceError(
                f"The trace in {trace.source} is still incomplete. "
                f"Try again later: keylag explain {trace_id}"
            )
        except TraceError as error:
            problem = error
        if time.monotonic() > deadline:
            raise problem
        time.sleep(0.1)


def _is_complete(trace: Trace) -> bool:
    # OSProfiler sends the stop of the root last; OpenTelemetry exports the span of the
    # request after its children.
    top = [span for root in trace.spans for span in (root, *root.children)]
    ended = all(root.end > root.start for root in trace.spans)
    return ended and any(METHOD in span.attributes for span in top)


def read_first(locations: Iterable[str], trace_id: str) -> Trace:
    """Read a trace from the first location that has it.

    Raises TraceError with the errors of all locations.
    """
    errors = []
    for location in locations:
        try:
            return read_trace(location, trace_id)
        except TraceError as error:
            errors.append(str(error))
    raise TraceError("\n".join(errors))


def read_trace(location: str, trace_id: str = "") -> Trace:
    """Read a trace from a location; a file with a single trace needs no id.

    Raises TraceError if it is missing or the location cannot be read.
    """
    scheme, separator, _ = location.partition("://")
    if not separator:
        return file.read(Path(location), trace_id)
    if scheme not in SOURCES:
        schemes = ", ".join(SOURCES)
        message = f"{scheme}:// is not supported. Use a file, or one of {schemes}."
        raise TraceError(message)
    return SOURCES[scheme](location, trace_id)

"""Where traces are kept: one file for each kind of place, one function in each."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from keylag.trace.model import METHOD, Trace, TraceError
from keylag.trace.sources import driver, file, jaeger, sqlalchemy, tempo

Read = Callable[[str, str], Trace]
"""Takes the place and the trace's id; raises TraceError."""

SOURCES: Final[Mapping[str, Read]] = {
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
"""By the part of a place's address before ://; what has none is a file."""

PATIENCE_SECONDS: Final = 30.0
"""How long a trace may take to arrive where it is kept, after the answer."""


def read_whole(place: str, trace_id: str, patience: float = PATIENCE_SECONDS) -> Trace:
    """Read the trace of one request, once all of it is there.

    It is sent when the request is over, so the answer may be here before it.  Raises
    TraceError as `read` does, or where it is not whole after so many seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            found = read(place, trace_id)
            if _is_whole(found):
                return found
            said = TraceError(
                f"Not all of the trace has come to {found.source} yet. "
                f"Look again later: keylag explain {trace_id}"
            )
        except TraceError as error:
            said = error
        if time.monotonic() > deadline:
            raise said
        time.sleep(0.1)


def _is_whole(trace: Trace) -> bool:
    """Tell whether the request's own span has come, and all at the top have ended.

    OSProfiler tells first and last of what is at the top; OpenTelemetry sends the
    span of the request after those below it.
    """
    top = [span for root in trace.spans for span in (root, *root.children)]
    ended = all(root.end > root.start for root in trace.spans)
    return ended and any(METHOD in span.attributes for span in top)


def read_first(places: Iterable[str], trace_id: str) -> Trace:
    """Read a trace from the first place that has it.

    Raises TraceError with what each of them said where none has.
    """
    said = []
    for place in places:
        try:
            return read(place, trace_id)
        except TraceError as error:
            said.append(str(error))
    raise TraceError("\n".join(said))


def read(place: str, trace_id: str = "") -> Trace:
    """Read a trace from a place; a file may hold one only, and need no id.

    Raises TraceError where there is none, or no such place.
    """
    scheme, separator, _ = place.partition("://")
    if not separator:
        return file.read(Path(place), trace_id)
    if scheme not in SOURCES:
        known = ", ".join(SOURCES)
        message = f"Traces are read from files and {known}, not from {scheme}."
        raise TraceError(message)
    return SOURCES[scheme](place, trace_id)

"""Where traces are kept: one file for each kind of place, one function in each."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from keylag.trace.model import Trace, TraceError
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

PATIENCE_SECONDS: Final = 10.0
"""How long a trace may take to arrive where it is kept, after the answer."""


def read_whole(place: str, trace_id: str) -> Trace:
    """Read a trace that is still arriving, once its roots have ended.

    Points are sent when a request is over, so the answer may be here before them.
    After a while it is given as it is then; raises TraceError as `read` does.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with suppress(TraceError):
            found = read(place, trace_id)
            if all(root.end > root.start for root in found.spans):
                return found
        time.sleep(0.1)
    return read(place, trace_id)


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

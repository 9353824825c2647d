"""Keylag's environment variables, beside those of OpenTelemetry."""

from __future__ import annotations

import os
import re

#: "true": each response has its breakdown in a Server-Timing header.
#: "signed": only responses to requests that are signed as for OSProfiler.
#: Off by default, because it reveals internals of Keystone to callers.
KEYLAG_SERVER_TIMING = "KEYLAG_SERVER_TIMING"

#: The keys of signed requests, comma-separated.
KEYLAG_SERVER_TIMING_KEYS = "KEYLAG_SERVER_TIMING_KEYS"

#: "true": append a comment with route and operation to each SQL statement.
#: Off by default, because it changes the text of statements.
KEYLAG_SQL_COMMENT = "KEYLAG_SQL_COMMENT"

#: Seconds that a worker waits for its last export at shutdown, by default 0.5.
KEYLAG_LAST_EXPORT_SECONDS = "KEYLAG_LAST_EXPORT_SECONDS"

#: "true": time calls in Python even if the native part was compiled.
KEYLAG_PURE_PYTHON = "KEYLAG_PURE_PYTHON"

#: Trace requests of at least this many seconds even if the sampler drops them.
#: Unset: none.
KEYLAG_TRACE_SLOW_SECONDS = "KEYLAG_TRACE_SLOW_SECONDS"

#: OpenTelemetry's variable for the sampler.  `_FIXED_RATIOS` has the ratio of root
#: spans of samplers without an argument; that of `_RATIO_SAMPLERS` is their argument.
OTEL_TRACES_SAMPLER = "OTEL_TRACES_SAMPLER"
_FIXED_RATIOS = {
    "always_on": 1.0,
    "always_off": 0.0,
    "parentbased_always_on": 1.0,
    "parentbased_always_off": 0.0,
}
_RATIO_SAMPLERS = frozenset({"traceidratio", "parentbased_traceidratio"})

_USER_INFO = re.compile(r"//[^/?#\s]*@")

_TRUE = frozenset({"1", "true", "yes", "on"})


def strip_credentials(address: str) -> str:
    """Return a URL without its user name and password."""
    return _USER_INFO.sub("//", address)


def is_true(name: str) -> bool:
    """Return whether a variable is set to 1, true, yes or on."""
    return os.environ.get(name, "").strip().lower() in _TRUE


def server_timing() -> bool:
    """Return whether all responses get a Server-Timing header."""
    return is_true(KEYLAG_SERVER_TIMING)


def server_timing_keys() -> tuple[bytes, ...]:
    """Return the keys of requests that get the header, () unless "signed" is set."""
    if os.environ.get(KEYLAG_SERVER_TIMING, "").strip().lower() != "signed":
        return ()
    keys = os.environ.get(KEYLAG_SERVER_TIMING_KEYS, "").split(",")
    return tuple(key.strip().encode() for key in keys if key.strip())


def sql_comment() -> bool:
    """Return whether SQL statements get Keylag's comment."""
    return is_true(KEYLAG_SQL_COMMENT)


def pure_python() -> bool:
    """Return whether to leave out the native part."""
    return is_true(KEYLAG_PURE_PYTHON)


def last_export_seconds() -> float:
    """Return the time limit of the last export, in seconds."""
    given = _float(KEYLAG_LAST_EXPORT_SECONDS)
    return 0.5 if given is None else given


def trace_slow_seconds() -> float | None:
    """Return the seconds from which a request is always traced, or None."""
    return _float(KEYLAG_TRACE_SLOW_SECONDS)


def sampling_ratio() -> float | None:
    """Return the ratio of root spans that the sampler keeps, from 0 to 1.

    None if the ratio is unknown, as that of a custom sampler.
    """
    name = os.environ.get(OTEL_TRACES_SAMPLER, "").strip().lower()
    argument = f"{OTEL_TRACES_SAMPLER}_ARG"
    ratio = _float(argument) if name in _RATIO_SAMPLERS else _FIXED_RATIOS.get(name)
    return ratio if ratio is not None and 0 <= ratio <= 1 else None


def uses_delta_temporality() -> bool:
    """Return whether the exporters are configured for delta temporality."""
    name = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
    return os.environ.get(name, "").strip().lower() not in {"", "cumulative"}


def _float(name: str) -> float | None:
    """Return the variable as a float, or None if unset or invalid."""
    try:
        return float(os.environ[name])
    except (KeyError, ValueError):
        return None

"""The environment variables that Keylag adds to OpenTelemetry's own."""

from __future__ import annotations

import os
import re

#: "true": every answer carries its own breakdown in a Server-Timing header.
#: "signed": only answers to those who sign their request as for OSProfiler.
#: Off by default, because it tells a caller about Keystone's insides.
KEYLAG_SERVER_TIMING = "KEYLAG_SERVER_TIMING"

#: The keys of signed requests, with commas between them.
KEYLAG_SERVER_TIMING_KEYS = "KEYLAG_SERVER_TIMING_KEYS"

#: "true": each SQL statement carries a constant comment with its route and
#: operation.  Off by default, because it changes what the database sees.
KEYLAG_SQL_COMMENT = "KEYLAG_SQL_COMMENT"

#: How many seconds a worker that ends may wait for its last export; 0.5 unless
#: given.  It is all that an endpoint can add to the end of a worker.
KEYLAG_LAST_EXPORT_SECONDS = "KEYLAG_LAST_EXPORT_SECONDS"

#: "true": calls are watched in Python even where that in C was compiled.
KEYLAG_PURE_PYTHON = "KEYLAG_PURE_PYTHON"

#: A request that takes longer than that many seconds is traced although the
#: sampler left it out.  Unset, none is.
KEYLAG_TRACE_SLOW_SECONDS = "KEYLAG_TRACE_SLOW_SECONDS"

#: OpenTelemetry's, and what of the requests that begin a trace its samplers
#: keep; those by a ratio keep what is their argument.
OTEL_TRACES_SAMPLER = "OTEL_TRACES_SAMPLER"
_SHARES = {
    "always_on": 1.0,
    "always_off": 0.0,
    "parentbased_always_on": 1.0,
    "parentbased_always_off": 0.0,
}
_RATIOS = frozenset({"traceidratio", "parentbased_traceidratio"})

_USER_INFO = re.compile(r"//[^/@]*@")

_TRUE = frozenset({"1", "true", "yes", "on"})


def without_user_info(address: str) -> str:
    """Return an address without the name and password that may be in it."""
    return _USER_INFO.sub("//", address)


def is_true(name: str) -> bool:
    """Return whether a variable is set to a word that means yes."""
    return os.environ.get(name, "").strip().lower() in _TRUE


def server_timing() -> bool:
    """Return whether all answers carry a Server-Timing header."""
    return is_true(KEYLAG_SERVER_TIMING)


def server_timing_keys() -> tuple[bytes, ...]:
    """Return the keys that sign a request for the header; none if it is not asked."""
    if os.environ.get(KEYLAG_SERVER_TIMING, "").strip().lower() != "signed":
        return ()
    keys = os.environ.get(KEYLAG_SERVER_TIMING_KEYS, "").split(",")
    return tuple(key.strip().encode() for key in keys if key.strip())


def sql_comment() -> bool:
    """Return whether SQL statements carry Keylag's comment."""
    return is_true(KEYLAG_SQL_COMMENT)


def pure_python() -> bool:
    """Return whether calls are to be watched in Python."""
    return is_true(KEYLAG_PURE_PYTHON)


def last_export_seconds() -> float:
    """Return how long a last export may take."""
    given = _number(KEYLAG_LAST_EXPORT_SECONDS)
    return 0.5 if given is None else given


def trace_slow_seconds() -> float | None:
    """Return from when on a request is slow enough to be traced; None for never."""
    return _number(KEYLAG_TRACE_SLOW_SECONDS)


def traced_share() -> float | None:
    """Return how much of the requests that begin a trace is traced, of 1.

    None if only the sampler can tell, as one that is no part of OpenTelemetry.
    """
    name = os.environ.get(OTEL_TRACES_SAMPLER, "").strip().lower()
    argument = f"{OTEL_TRACES_SAMPLER}_ARG"
    share = _number(argument) if name in _RATIOS else _SHARES.get(name)
    return share if share is not None and 0 <= share <= 1 else None


def wants_deltas() -> bool:
    """Return whether OpenTelemetry's exporters are told to send what was added."""
    name = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
    return os.environ.get(name, "").strip().lower() not in {"", "cumulative"}


def _number(name: str) -> float | None:
    """Return a number; what is none is not heard."""
    try:
        return float(os.environ[name])
    except (KeyError, ValueError):
        return None

"""The tables of arms, caches and workloads.

`{memcached}`, `{redis}` and `{sink}` in a value are replaced by server addresses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

BASE = "bare"
CONTROL = "bare_again"
KEYLAG = "keylag"

EXPORT_SECONDS = "KEYLAG_BENCH_EXPORT_SECONDS"
"""Environment variable: seconds of an arm's work between exports of metrics."""

_SIGNING_KEY = "keylag-bench"
_KEYLAG = {
    "OTEL_METRICS_EXPORTER": "otlp",
    # No exports by wall time, because an arm works only part of it.
    "OTEL_METRIC_EXPORT_INTERVAL": "inf",
}
_TRACES = {
    **_KEYLAG,
    "OTEL_TRACES_EXPORTER": "otlp",
    "KEYLAG_TRACE_SLOW_SECONDS": "2",
}


@dataclass(frozen=True)
class Arm:
    """One way to run Keystone."""

    name: str
    title: str
    instrumentation: str
    """A key of MAKERS in bench/inside/instrumentation.py."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """One call, repeated with one cache backend."""

    name: str
    call: str
    cache: str
    """A key of CACHES."""
    requests: int
    """Requests of each arm per round, about half a second."""
    turn: int
    """Requests of an arm per turn, about 50 ms: long enough to fill the processor's
    caches, and short enough for the speed of the machine to stay the same."""
    goal: float | None
    """The highest CPU ratio allowed for Keylag; None if there is no goal."""


ARMS: Mapping[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm(BASE, "bare", "bare"),
        Arm(CONTROL, "bare again", "bare"),
        Arm("keylag", "Keylag", "keylag", _KEYLAG),
        Arm(
            "keylag_python",
            "Keylag without C",
            "keylag",
            {**_KEYLAG, "KEYLAG_PURE_PYTHON": "true"},
        ),
        Arm(
            "keylag_export_60",
            "Keylag, export 60 s",
            "keylag",
            {**_KEYLAG, EXPORT_SECONDS: "60"},
        ),
        Arm(
            "keylag_export_5",
            "Keylag, export 5 s",
            "keylag",
            {**_KEYLAG, EXPORT_SECONDS: "5"},
        ),
        Arm(
            "keylag_traces",
            "Keylag with traces",
            "keylag",
            {
                **_TRACES,
                "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
                "OTEL_TRACES_SAMPLER_ARG": "0.01",
            },
        ),
        Arm(
            "keylag_slow",
            "Keylag, slow traced",
            "keylag",
            {**_TRACES, "OTEL_TRACES_SAMPLER": "always_off"},
        ),
        Arm("otel", "OpenTelemetry", "otel"),
        Arm(
            "osprofiler",
            "OSProfiler",
            "osprofiler",
            {
                "OS_PROFILER__ENABLED": "true",
                "OS_PROFILER__TRACE_SQLALCHEMY": "true",
                "OS_PROFILER__HMAC_KEYS": _SIGNING_KEY,
                "OS_PROFILER__CONNECTION_STRING": "redis://{redis}/1",
            },
        ),
    )
}

CACHES: Mapping[str, Mapping[str, str]] = {
    "off": {"OS_CACHE__BACKEND": "dogpile.cache.null"},
    "memcache_pool": {
        "OS_CACHE__BACKEND": "oslo_cache.memcache_pool",
        "OS_CACHE__MEMCACHE_SERVERS": "{memcached}",
    },
    "pymemcache": {
        "OS_CACHE__BACKEND": "dogpile.cache.pymemcache",
        "OS_CACHE__MEMCACHE_SERVERS": "{memcached}",
    },
    "redis": {
        "OS_CACHE__BACKEND": "dogpile.cache.redis",
        "OS_CACHE__REDIS_SERVER": "{redis}",
    },
    "auth_token": {
        "OS_CACHE__BACKEND": "dogpile.cache.null",
        "KEYLAG_BENCH_TOKEN_CACHE": "{memcached}",
    },
}
"""Options of Keystone by cache backend."""

COMMON: Mapping[str, str] = {
    # The lowest cost: password hashing would hide the overhead.
    "OS_IDENTITY__PASSWORD_HASH_ROUNDS": "4",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "{sink}",
    "OS_PROFILER__ENABLED": "false",
}
"""Environment of every arm."""

WORKLOADS: Mapping[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("get_warm_memcache_pool", "GET", "memcache_pool", 80, 8, 1.03),
        Workload("get_warm_pymemcache", "GET", "pymemcache", 80, 8, 1.03),
        Workload("get_warm_redis", "GET", "redis", 30, 5, 1.03),
        Workload("get_cache_off", "GET", "off", 9, 1, 1.02),
        Workload("post_cache_off", "POST", "off", 7, 1, 1.02),
        Workload("post_warm_memcache_pool", "POST", "memcache_pool", 32, 2, 1.02),
        Workload("post_warm_pymemcache", "POST", "pymemcache", 32, 2, 1.02),
        Workload("post_warm_redis", "POST", "redis", 20, 2, 1.02),
        # A service that does nothing: the ratio is that of auth_token's time.
        Workload("service_cached_token", "SERVICE", "auth_token", 800, 80, None),
    )
}

"""Declarations of the metrics of services with auth_token: `keystone.auth_token.*`.

They have the form of those in `keylag_otel.instruments`.
"""

from __future__ import annotations

from keylag_otel.instruments import (
    ERROR_TYPE,
    METHOD,
    OPERATION,
    PHASE,
    STATUS,
    Instrument,
)

VALIDATION = "keystone.auth_token.validation"
RESULT = "keystone.auth_token.result"
CACHE_OPERATION = "keystone.auth_token.cache.operation"
CACHE_RESULT = "keystone.auth_token.cache.result"
CALL = "keystone.auth_token.call"
RETRY = "keystone.auth_token.retry"
TIMES = "keystone.auth_token.times"
STRATEGY = "keystone.auth_token.security_strategy"
CACHE = "keystone.auth_token.cache"

REQUEST_DURATION = Instrument(
    "keystone.auth_token.request.duration",
    "s",
    "Wall time of a service's request, from auth_token inward",
    (METHOD, STATUS),
)

PHASE_TIME = Instrument(
    "keystone.auth_token.phase.time",
    "s",
    "Self time of a service's requests; operation auth_token is authentication, the "
    "rest is the service's own",
    (METHOD, STATUS, PHASE, OPERATION),
)

#: Recorded per call; by the name that `recording.record` takes.
HISTOGRAMS = {
    "call": Instrument(
        "keystone.auth_token.call.duration",
        "s",
        "Time of a request of auth_token to Keystone; each retry counts as a request",
        (CALL, STATUS, ERROR_TYPE),
    ),
    "cache": Instrument(
        "keystone.auth_token.cache.duration",
        "s",
        "Time of a look-up or change in the token cache, including the wait for a "
        "connection; a stalled cache server is far above the others",
        (CACHE_OPERATION,),
    ),
    "age": Instrument(
        "keystone.auth_token.cache.age",
        "s",
        "Time since this worker last validated the token online, at each look-up: "
        "the age of a hit, or how long ago a miss was validated",
        (CACHE_RESULT,),
    ),
}

#: Counters, by the name that `counter_id` takes.
COUNTERS = {
    "auth_token_validations": Instrument(
        "keystone.auth_token.validations",
        "{validation}",
        "Validated tokens: offline by the token cache (a hit), online by Keystone "
        "(a miss)",
        (VALIDATION, RESULT),
    ),
    "retries": Instrument(
        "keystone.auth_token.retries",
        "{retry}",
        "Retried calls to Keystone: after a failed connection or a time-out, or "
        "because Keystone refused the service's own credentials",
        (RETRY,),
    ),
    "token_cache_errors": Instrument(
        "keystone.auth_token.cache.errors",
        "{error}",
        "Failures of the token cache; server_dead is a memcached that its client "
        "skips for a while",
        (ERROR_TYPE,),
    ),
    "replayed_misses": Instrument(
        "keystone.auth_token.cache.replayed_misses",
        "{miss}",
        "Misses of the same look-ups if token_cache_time were this many times as long; "
        "of 300 s for a service that does not cache",
        (TIMES,),
    ),
}

#: Read at each export; by the keys of ``configuration.CALLBACKS``.
GAUGES = {
    "cache_time": Instrument(
        "keystone.auth_token.cache.time",
        "s",
        "Configured token_cache_time: how long a validated token stays cached",
    ),
    "configuration_info": Instrument(
        "keystone.auth_token.configuration.info",
        "{info}",
        "Always 1; its attributes are memcache_security_strategy and where tokens "
        "are cached",
        (STRATEGY, CACHE),
    ),
}

#: Bucket bounds in seconds.  Cache and call: from a round trip to the time-outs.  Age:
#: around the default token_cache_time, 300, up to the usual lifetime of a token.
BUCKETS = {
    "call": (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    "cache": (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 3.0, 10.0),
    "age": (1, 10, 30, 60, 120, 300, 600, 900, 1800, 3600),
}

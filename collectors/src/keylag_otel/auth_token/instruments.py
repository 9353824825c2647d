"""Every metric of a service that auth_token protects, declared once.

Names, units and attributes as in `keylag_otel.instruments`, whose own these are
beside: what a service does about tokens is `keystone.auth_token.*`.
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
    "Self time of a service's requests; the operation auth_token is what went to "
    "authentication, the rest is the service's own",
    (METHOD, STATUS, PHASE, OPERATION),
)

#: Recorded as they happen; by the name that `recording.record` takes.
HISTOGRAMS = {
    "call": Instrument(
        "keystone.auth_token.call.duration",
        "s",
        "Time of a request that auth_token sent to Keystone; one that is tried "
        "again is several",
        (CALL, STATUS, ERROR_TYPE),
    ),
    "cache": Instrument(
        "keystone.auth_token.cache.duration",
        "s",
        "Time of a look-up or a change in the token cache, with waiting for a "
        "connection; a stall is one far above the others",
        (CACHE_OPERATION,),
    ),
    "age": Instrument(
        "keystone.auth_token.cache.age",
        "s",
        "Time since this worker last had the token validated by Keystone, when it "
        "was looked up: of a hit its age, of a miss how long ago it was known",
        (CACHE_RESULT,),
    ),
}

#: Counters; by the name that `tally` takes.
TALLIES = {
    "auth_token_validations": Instrument(
        "keystone.auth_token.validations",
        "{validation}",
        "Tokens that were asked about: offline in the token cache (a hit), online "
        "of Keystone (a miss)",
        (VALIDATION, RESULT),
    ),
    "retries": Instrument(
        "keystone.auth_token.retries",
        "{retry}",
        "Calls to Keystone that were made again: after a failed connection or a "
        "time-out, or because Keystone refused the service's own credentials",
        (RETRY,),
    ),
    "token_cache_errors": Instrument(
        "keystone.auth_token.cache.errors",
        "{error}",
        "Failures of the token cache; server_dead is a memcached that its client "
        "gives up for a while",
        (ERROR_TYPE,),
    ),
    "replayed_misses": Instrument(
        "keystone.auth_token.cache.replayed_misses",
        "{miss}",
        "Misses that the same uses of tokens would make if token_cache_time were "
        "so many times as long",
        (TIMES,),
    ),
}

#: Read when metrics are exported; by the name in ``configuration.READ``.
GAUGES = {
    "cache_time": Instrument(
        "keystone.auth_token.cache.time",
        "s",
        "Configured token_cache_time: how long a validated token is believed",
    ),
    "configuration_info": Instrument(
        "keystone.auth_token.configuration.info",
        "{info}",
        "Always 1; its attributes are memcache_security_strategy and where tokens "
        "are cached",
        (STRATEGY, CACHE),
    ),
}

#: Seconds.  Cache and call: from a round trip to the time-outs.  Age: around the
#: default of token_cache_time, 300, up to a token's usual lifetime.
BUCKETS = {
    "call": (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    "cache": (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 3.0, 10.0),
    "age": (1, 10, 30, 60, 120, 300, 600, 900, 1800, 3600),
}

"""Dashboard *Services*: validations that services cause, and their cost."""

from typing import Final

from keylag_dashboards.model import Board, Panel, Row
from keylag_dashboards.queries.services import QUERIES, STALL_SECONDS, TIMES

_SAVED: Final = {f"{times} times": f"saved_{times}" for times in TIMES}

ASKING: Final = Row(
    "Validations",
    (
        Panel(
            "Validations by service",
            "Validations that services request from Keystone, because their token"
            " cache has no entry.",
            "reqps",
            "lines",
            {"{{job}}": "online_validations"},
        ),
        Panel(
            "Validations by user, counted in Keystone",
            "By the user whose token validates, if it is an OpenStack service. More"
            " than on the left: services without Keylag.",
            "reqps",
            "lines",
            {"{{keystone_caller}}": "callers"},
            drill_down=("tokens",),
        ),
        Panel(
            "Requests to services",
            "Each request has one token to validate, some have two.",
            "reqps",
            "lines",
            {"{{job}}": "requests"},
        ),
        Panel(
            "Tokens not accepted",
            "refused: the client's token is invalid. unavailable: Keystone did not"
            " respond, or the service's own credentials are wrong.",
            "reqps",
            "lines",
            {"{{job}} {{keystone_auth_token_result}}": "not_accepted"},
            empty_reason="every token was accepted",
        ),
    ),
)

CACHED: Final = Row(
    "The token cache",
    (
        Panel(
            "Hits",
            "Share of tokens that were validated from the cache.",
            "percentunit",
            "lines",
            {"{{job}}": "hits"},
            width=8,
        ),
        Panel(
            "Age of cached validations",
            "Time since this worker validated the token. Hits near token_cache_time"
            " and misses slightly above it: longer caching helps.",
            "s",
            "lines",
            {
                "hits, p50": "age_hit_p50",
                "hits, p95": "age_hit_p95",
                "misses, p50": "age_miss_p50",
            },
            empty_reason="no token was used again after it expired from the cache",
            empty_legends=("misses, p50",),
            width=8,
        ),
        Panel(
            "Latency of cache operations",
            "Includes the round trip to memcached, signing or encryption, and the"
            " wait for a connection.",
            "s",
            "lines",
            {"p50": "lookup_p50", "p99": "lookup_p99"},
            width=8,
        ),
        Panel(
            "Savings of a longer token_cache_time",
            "Share of the misses that a 2, 4 or 12 times longer lifetime avoids;"
            " each worker replays its own look-ups. The price: a revoked token is"
            " accepted for as long.",
            "percentunit",
            "table",
            {"token_cache_time": "cache_time", "misses": "misses", **_SAVED},
            width=24,
            units={"token_cache_time": "s", "misses": "short"},
        ),
        Panel(
            "Stalls",
            f"Operations above {STALL_SECONDS} s. A hanging memcached delays every"
            " request by memcache_pool_socket_timeout.",
            "ops",
            "lines",
            {"{{job}}": "stalls"},
        ),
        Panel(
            "Errors of the token cache",
            "server_dead: the client skips this memcached for"
            " memcache_pool_dead_retry seconds.",
            "ops",
            "lines",
            {"{{job}} {{error_type}}": "cache_errors"},
            empty_reason="no call to the token cache failed",
        ),
    ),
)

COST: Final = Row(
    "Cost per request",
    (
        Panel(
            "Share of authentication",
            "Share of a request's time, from auth_token inward.",
            "percentunit",
            "lines",
            {"{{job}}": "share"},
        ),
        Panel(
            "Time per request, by phase",
            "keystone: waiting for Keystone. token_crypto: memcache_security_strategy.",
            "s",
            "stacked",
            {
                "{{keystone_phase}}": "auth_phases",
                "the service itself": "service_itself",
            },
        ),
        Panel(
            "Calls to Keystone",
            "authenticate: the service's own token, once per token lifetime."
            " discover: once per worker.",
            "reqps",
            "lines",
            {"{{job}} {{keystone_auth_token_call}}": "calls"},
            width=8,
        ),
        Panel(
            "Time of a call to Keystone",
            "Measured in the service: includes the network and Keystone's queue.",
            "s",
            "lines",
            {"{{keystone_auth_token_call}}": "call_time"},
            width=8,
            drill_down=("tokens",),
        ),
        Panel(
            "Failed and retried calls",
            "Without http_connect_timeout, a call to a hanging Keystone never ends.",
            "reqps",
            "lines",
            {
                "{{job}} {{error_type}}": "failed_calls",
                "{{job}} retry: {{keystone_auth_token_retry}}": "retries",
            },
            width=8,
            empty_reason="no call failed",
        ),
        Panel(
            "Configuration",
            "Workers by token cache and by its protection. process: a cache in each"
            " worker, which is deprecated.",
            "short",
            "table",
            {"workers": "configuration"},
            width=24,
        ),
    ),
)

BOARD: Final = Board(
    name="services",
    title="Keylag / Services",
    purpose="Validations that services cause in Keystone, and their cost for the"
    " services.",
    queries=QUERIES,
    variables=("job", "instance", "service", "worker"),
    rows=(ASKING, CACHED, COST),
)

"""Dashboard *Services*: validations that services cause, and their cost."""

from typing import Final

from keylag_dashboards.config import WARNING
from keylag_dashboards.model import Board, Column, Panel, Row
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
            explained_by=("services: Hits",),
        ),
        Panel(
            "Validations by user, counted in Keystone",
            "By the user whose token validates, if it is an OpenStack service. More"
            " than on the left: services without Keylag.",
            "reqps",
            "lines",
            {"{{keystone_caller}}": "callers"},
            explained_by=("tokens: Time per call, by category",),
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
            explained_by=("services: Failed and retried calls",),
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
            maximum=1,
            explained_by=(
                "services: Savings of a longer token_cache_time",
                "services: Errors of the token cache",
            ),
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
            explained_by=("services: Stalls",),
        ),
        Panel(
            "Savings of a longer token_cache_time",
            "Share of the misses that a 2, 4 or 12 times longer lifetime avoids;"
            " each worker replays its own look-ups. The price: a revoked token is"
            " accepted for as long.",
            "percentunit",
            "table",
            {"misses": "misses", "token_cache_time": "cache_time", **_SAVED},
            width=24,
            height=5,
            columns={
                "job": Column(),
                "token_cache_time": Column("s", 140),
                "misses": Column("locale", 90, 0),
                **dict.fromkeys(_SAVED, Column("percentunit", 90, 1)),
            },
        ),
        Panel(
            "Stalls",
            f"Operations above {STALL_SECONDS} s. A hanging memcached delays every"
            " request by memcache_pool_socket_timeout.",
            "ops",
            "lines",
            {"{{job}}": "stalls"},
            thresholds={0.001: WARNING},
            explained_by=("cache: Connections",),
        ),
        Panel(
            "Errors of the token cache",
            "server_dead: the client skips this memcached for"
            " memcache_pool_dead_retry seconds.",
            "ops",
            "lines",
            {"{{job}} {{error_type}}": "cache_errors"},
            explained_by=("services: Latency of cache operations",),
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
            maximum=1,
            explained_by=("services: Time per request, by phase",),
        ),
        Panel(
            "Time per request, by phase",
            "keystone: waiting for Keystone. token crypto: memcache_security_strategy.",
            "s",
            "stacked",
            {
                "{{keystone_phase}}": "auth_phases",
                "the service itself": "service_itself",
            },
            explained_by=("services: Time of a call to Keystone",),
        ),
        Panel(
            "Authentication by method",
            "Of the requests in the time shown. Short requests feel a wait for"
            " Keystone or for the token cache most; the mean of all hides it.",
            "short",
            "table",
            {
                "share": "method_share",
                "authentication": "method_time",
                "requests": "method_requests",
            },
            width=24,
            height=6,
            columns={
                "job": Column(),
                "method": Column(width=150),
                "share": Column("percentunit", 110, 1),
                "authentication": Column("s", 150),
                "requests": Column("locale", 110, 0),
            },
            explained_by=("services: Time per request, by phase",),
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
            explained_by=("tokens: Time per call, by category",),
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
            empty_reason="no call was retried",
            empty_legends=("{{job}} retry: {{keystone_auth_token_retry}}",),
            explained_by=("workers: Waiting connections",),
        ),
        Panel(
            "Configuration",
            "Workers by token cache and by its protection. process: a cache in each"
            " worker, which is deprecated. none: each call validates its token.",
            "short",
            "table",
            {"workers": "configuration"},
            width=24,
            height=5,
            columns={
                "job": Column(),
                "token cache": Column(width=200),
                "protection": Column(width=200),
                "workers": Column("locale", 130, 0),
            },
        ),
    ),
)

BOARD: Final = Board(
    name="services",
    title="Keylag / Services",
    purpose="Validations that services cause in Keystone, and their cost for the"
    " services.",
    queries=QUERIES,
    variables=("cluster", "region", "job", "host", "service"),
    rows=(ASKING, CACHED, COST),
)

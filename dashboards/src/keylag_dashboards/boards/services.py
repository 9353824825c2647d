"""Dashboard *Services*: validations that services cause, and their cost."""

from typing import Final

from keylag_dashboards.model import Board, Panel, Row
from keylag_dashboards.queries.services import QUERIES, STALL_SECONDS, TIMES

_SAVED: Final = {f"{times} times": f"saved_{times}" for times in TIMES}

ASKING: Final = Row(
    "Who asks Keystone",
    (
        Panel(
            "Validations caused",
            "What the services ask of Keystone: the token cache had no answer.",
            "reqps",
            "lines",
            {"{{job}}": "online_validations"},
        ),
        Panel(
            "Validations, as Keystone counts them",
            "By the name of the asking user, if it is a service's; more than on the"
            " left are services without Keylag.",
            "reqps",
            "lines",
            {"{{keystone_caller}}": "callers"},
            drill_down=("tokens",),
        ),
        Panel(
            "Requests to services",
            "Each needs its token judged, some two.",
            "reqps",
            "lines",
            {"{{job}}": "requests"},
        ),
        Panel(
            "Tokens not accepted",
            "refused is the callers' doing; unavailable is a Keystone that did not"
            " answer, or that the service's own credentials are wrong for.",
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
            "Share of tokens that needed no question to Keystone.",
            "percentunit",
            "lines",
            {"{{job}}": "hits"},
            width=8,
        ),
        Panel(
            "Age of what is looked up",
            "Since this worker last had it validated: hits near token_cache_time, and"
            " misses not far above it, are what longer caching saves.",
            "s",
            "lines",
            {
                "hits, p50": "age_hit_p50",
                "hits, p95": "age_hit_p95",
                "misses, p50": "age_miss_p50",
            },
            empty_reason="no token was used again after it had left the cache",
            empty_legends=("misses, p50",),
            width=8,
        ),
        Panel(
            "Time of a look-up or a change",
            "A round trip to memcached, protection and waiting for a connection.",
            "s",
            "lines",
            {"p50": "lookup_p50", "p99": "lookup_p99"},
            width=8,
        ),
        Panel(
            "What a longer token_cache_time would save",
            "Share of the misses, had tokens been kept so many times as long: each"
            " worker replays its own uses of tokens and counts. The price: a revoked"
            " token is believed for as long.",
            "percentunit",
            "table",
            {"token_cache_time": "cache_time", "misses": "misses", **_SAVED},
            width=24,
            units={"token_cache_time": "s", "misses": "short"},
        ),
        Panel(
            "Stalls",
            f"Look-ups and changes above {STALL_SECONDS} s: a memcached that hangs"
            " holds every request up for memcache_pool_socket_timeout.",
            "ops",
            "lines",
            {"{{job}}": "stalls"},
        ),
        Panel(
            "Errors of the token cache",
            "server_dead is a memcached given up for memcache_pool_dead_retry.",
            "ops",
            "lines",
            {"{{job}} {{error_type}}": "cache_errors"},
            empty_reason="no call to the token cache failed",
        ),
    ),
)

COST: Final = Row(
    "What it costs a request",
    (
        Panel(
            "Share that went to authentication",
            "Of a service's request, from auth_token inward.",
            "percentunit",
            "lines",
            {"{{job}}": "share"},
        ),
        Panel(
            "Time per request, by part",
            "keystone is waiting for Keystone; token_crypto is"
            " memcache_security_strategy.",
            "s",
            "stacked",
            {
                "{{keystone_phase}}": "auth_phases",
                "the service itself": "service_itself",
            },
        ),
        Panel(
            "Calls to Keystone",
            "authenticate is the service's own token, once in its lifetime; discover"
            " is once in a worker's.",
            "reqps",
            "lines",
            {"{{job}} {{keystone_auth_token_call}}": "calls"},
            width=8,
        ),
        Panel(
            "Time of a call to Keystone",
            "As the service waits for it, with the network and Keystone's queue.",
            "s",
            "lines",
            {"{{keystone_auth_token_call}}": "call_time"},
            width=8,
            drill_down=("tokens",),
        ),
        Panel(
            "Failed and repeated calls",
            "Without http_connect_timeout a call to a Keystone that hangs never ends.",
            "reqps",
            "lines",
            {
                "{{job}} {{error_type}}": "failed_calls",
                "{{job}} again: {{keystone_auth_token_retry}}": "retries",
            },
            width=8,
            empty_reason="every call was answered at once",
        ),
        Panel(
            "Configuration",
            "Workers by where they cache tokens, and how those are protected there;"
            " process is a cache for each worker, which is deprecated.",
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
    purpose="Which services ask Keystone how often, and what that costs them.",
    queries=QUERIES,
    variables=("job", "instance", "service", "worker"),
    rows=(ASKING, CACHED, COST),
)

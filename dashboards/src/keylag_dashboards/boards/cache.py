"""Dashboard *Cache*: hit ratios and latency of each layer, and evictions."""

from typing import Final

from keylag_dashboards.model import Annotation, Board, Panel, Row
from keylag_dashboards.queries.cache import LAYERS, QUERIES

_TITLES: Final = dict(
    zip(LAYERS, ("region ids", "request-local", "backend"), strict=True)
)

LAYERED: Final = Row(
    "Keystone's layers",
    (
        Panel(
            "Look-ups by layer",
            "A key needs its region's id first, then the request's own memory, then the"
            " backend: only the last is a round trip.",
            "ops",
            "lines",
            {title: f"gets_{layer}" for layer, title in _TITLES.items()},
        ),
        Panel(
            "Hits by layer",
            "A backend that hits less than half of the time costs more than it saves.",
            "percentunit",
            "lines",
            {title: f"ratio_{layer}" for layer, title in _TITLES.items()},
        ),
        Panel(
            "Hits by region",
            "A region that collapses was flushed, or its expiration is too short.",
            "percentunit",
            "lines",
            {"{{keystone_cache_region}}": "region_ratio"},
        ),
        Panel(
            "By function",
            "Each miss runs the function, with its SQL.",
            "short",
            "table",
            {
                "calls": "function_calls",
                "misses": "function_misses",
                "hits": "function_ratio",
            },
            units={"hits": "percentunit"},
        ),
    ),
)

BACKEND: Final = Row(
    "The way to the backend",
    (
        Panel(
            "Time per round trip",
            "Above some milliseconds the cache is far away, or stalls.",
            "s",
            "lines",
            {"{{http_request_method}}": "round_trip"},
            width=8,
        ),
        Panel(
            "Cache time per call",
            "What the cache costs a token call; set it against the SQL that it saves.",
            "s",
            "lines",
            {"{{http_request_method}}": "per_call"},
            width=8,
            drill_down=("tokens",),
        ),
        Panel(
            "Bytes to and from the backend",
            "Large values are catalogs and role lists.",
            "Bps",
            "lines",
            {"{{keystone_cache_region}} {{network_io_direction}}": "bytes"},
            width=8,
        ),
        Panel(
            "Invalidations of whole regions",
            "Each throws away everything of its region, for all workers.",
            "ops",
            "lines",
            {"{{keystone_cache_region}}": "invalidations"},
        ),
        Panel(
            "Errors and stalls",
            "server_dead is a server that the client gave up for memcache_dead_retry.",
            "ops",
            "lines",
            {"{{keystone_cache_region}} {{error_type}}": "errors"},
            empty_reason="no call to the backend failed",
        ),
    ),
)

SERVER: Final = Row(
    "memcached",
    (
        Panel(
            "Memory",
            "At the limit, evictions begin.",
            "bytes",
            "lines",
            {"used by {{instance}}": "memory_used", "limit": "memory_limit"},
            width=8,
        ),
        Panel(
            "Evictions",
            "Valid items dropped for want of memory: raise -m.",
            "ops",
            "lines",
            {
                "evicted": "evicted",
                "reclaimed": "reclaimed",
                "refused": "no_memory",
            },
            width=8,
        ),
        Panel(
            "Items",
            "A drop to zero is a restart or flush_all.",
            "short",
            "lines",
            {"{{instance}}": "items"},
            width=8,
        ),
        Panel(
            "Hits on the server",
            "All clients of this memcached together, not Keystone alone.",
            "percentunit",
            "lines",
            {"{{instance}}": "server_ratio"},
        ),
        Panel(
            "Connections",
            "At the limit new clients wait; look at memcache_pool_maxsize.",
            "short",
            "lines",
            {"open": "connections", "limit": "connections_limit"},
            width=6,
        ),
        Panel(
            "Connections refused or put off",
            "Above zero, the limit was reached.",
            "ops",
            "lines",
            {"{{instance}}": "refused"},
            width=6,
        ),
    ),
)

BOARD: Final = Board(
    name="cache",
    title="Keylag / Cache",
    purpose="Whether the cache answers, how fast, and what throws it away.",
    queries=QUERIES,
    variables=("job", "instance", "method", "memcached"),
    rows=(LAYERED, BACKEND, SERVER),
    annotations=(Annotation("Region flushed", "flushed", "green"),),
)

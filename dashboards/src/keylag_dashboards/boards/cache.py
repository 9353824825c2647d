"""Dashboard *Cache*: hit ratios and latency of each layer, and evictions."""

from typing import Final

from keylag_dashboards.config import BAD, WARNING
from keylag_dashboards.model import Annotation, Board, Column, Panel, Row
from keylag_dashboards.queries.cache import LAYERS, QUERIES

_TITLES: Final = dict(
    zip(LAYERS, ("region ids", "request-local", "backend"), strict=True)
)

LAYERED: Final = Row(
    "Keystone's layers",
    (
        Panel(
            "Look-ups by layer",
            "A look-up asks the request-local cache, then the backend, which is a round"
            " trip. The ids of regions are only those that the backend was asked for.",
            "ops",
            "lines",
            {title: f"gets_{layer}" for layer, title in _TITLES.items()},
            explained_by=("cache: Look-ups by function",),
        ),
        Panel(
            "Hits by layer",
            "A falling ratio of the backend: keys expire, are evicted or invalidated.",
            "percentunit",
            "lines",
            {title: f"ratio_{layer}" for layer, title in _TITLES.items()},
            maximum=1,
            explained_by=("cache: Hits by region",),
        ),
        Panel(
            "Hits by region",
            "A falling ratio: the region was flushed, or its expiration is too short.",
            "percentunit",
            "lines",
            {"{{keystone_cache_region}}": "region_ratio"},
            width=8,
            maximum=1,
            explained_by=(
                "cache: Look-ups by function",
                "cache: Invalidations of whole regions",
            ),
        ),
        Panel(
            "Look-ups by function",
            "Each miss runs the function, including its SQL.",
            "short",
            "table",
            {
                "calls": "function_calls",
                "misses": "function_misses",
                "hits": "function_ratio",
            },
            width=16,
            height=8,
            columns={
                "region": Column(width=185),
                "function": Column(),
                "calls": Column("locale", 75, 0),
                "misses": Column("locale", 75, 0),
                "hits": Column("percentunit", 75, 1),
            },
        ),
    ),
)

BACKEND: Final = Row(
    "Backend round trips",
    (
        Panel(
            "Time per round trip",
            "More than a few milliseconds: the cache is remote, or it stalls.",
            "s",
            "lines",
            {"{{http_request_method}}": "round_trip"},
            width=8,
            explained_by=("cache: Errors and stalls", "cache: Connections"),
        ),
        Panel(
            "Cache time per call",
            "Cache time of a token call. Compare it with the SQL time that it saves.",
            "s",
            "lines",
            {"{{http_request_method}}": "per_call"},
            width=8,
            explained_by=("tokens: Time per call, by category",),
        ),
        Panel(
            "Bytes to and from the backend",
            "Large values are usually catalogs and role lists.",
            "Bps",
            "lines",
            {"{{keystone_cache_region}}": "bytes"},
            width=8,
        ),
        Panel(
            "Invalidations of whole regions",
            "Each invalidates all values of the region, for all workers.",
            "ops",
            "lines",
            {"{{keystone_cache_region}}": "invalidations"},
            explained_by=("revocation: Events written",),
        ),
        Panel(
            "Errors and stalls",
            "server_dead: the client skips this server for memcache_dead_retry"
            " seconds.",
            "ops",
            "lines",
            {"{{keystone_cache_region}} {{error_type}}": "errors"},
            explained_by=("cache: Time per round trip", "cache: Connections"),
        ),
    ),
)

SERVER: Final = Row(
    "memcached",
    (
        Panel(
            "Memory",
            "Evictions start at the limit.",
            "bytes",
            "lines",
            {"{{instance}}": "memory_used"},
            width=6,
        ),
        Panel(
            "Memory share",
            "Of its limit. Near 100 % evictions start; far below there is room.",
            "percentunit",
            "lines",
            {"{{instance}}": "memory_share"},
            width=6,
            maximum=1,
            thresholds={0.9: WARNING},
            explained_by=("cache: Evictions",),
        ),
        Panel(
            "Evictions",
            "memcached evicts valid items to free memory: raise its limit, -m.",
            "ops",
            "lines",
            {
                "evicted": "evicted",
                "reclaimed": "reclaimed",
                "refused": "no_memory",
            },
            width=6,
            explained_by=("cache: Memory share",),
        ),
        Panel(
            "Items",
            "A drop to zero is a restart or flush_all.",
            "short",
            "lines",
            {"{{instance}}": "items"},
            width=6,
        ),
        Panel(
            "Hits on the server",
            "Includes all clients of this memcached.",
            "percentunit",
            "lines",
            {"{{instance}}": "server_ratio"},
            width=8,
            maximum=1,
            explained_by=("cache: Evictions",),
        ),
        Panel(
            "Connections",
            "At the limit new clients wait: check memcache_pool_maxsize.",
            "short",
            "lines",
            {"{{instance}}": "connections", "limit": "connections_limit"},
            width=8,
            limits=("limit",),
            empty_reason="the number of connections is far below the limit",
            empty_legends=("limit",),
        ),
        Panel(
            "Refused clients",
            "Refused or delayed. Above zero: the connection limit was reached.",
            "ops",
            "lines",
            {"{{instance}}": "refused"},
            width=8,
            thresholds={0.001: BAD},
            explained_by=("cache: Connections",),
        ),
    ),
    source="memcached",
)

BOARD: Final = Board(
    name="cache",
    title="Keylag / Cache",
    purpose="Hit ratios and latency of the cache, and what invalidates it.",
    queries=QUERIES,
    variables=("cluster", "region", "job", "host", "method", "memcached"),
    rows=(LAYERED, BACKEND, SERVER),
    annotations=(Annotation("Region flushed", "flushed", "green"),),
)

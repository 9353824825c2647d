"""Metrics of the official memcached_exporter and the statistics they come from.

Names and labels are the official ones, so that dashboards and alerts work with either
exporter. Some official counters lack `_total`. They are gauges here: the name has to
stay, and prometheus_client appends `_total` to a counter's.
"""

from __future__ import annotations

from keylag_exporters.metric import Metric

Row = tuple[str, str, str]

# (statistic, metric without `memcached_`, help); `_total` makes it a counter
GENERAL: tuple[Row, ...] = (
    ("uptime", "uptime_seconds", "Age of the server process."),
    ("time", "time_seconds", "The server's clock, Unix time."),
    ("rusage_user", "process_user_cpu_seconds_total", "User CPU time used."),
    ("rusage_system", "process_system_cpu_seconds_total", "System CPU time used."),
    ("bytes_read", "read_bytes_total", "Bytes received from clients."),
    ("bytes_written", "written_bytes_total", "Bytes sent to clients."),
    ("curr_connections", "current_connections", "Connections open now."),
    ("total_connections", "connections_total", "Connections accepted."),
    ("rejected_connections", "connections_rejected_total", "Connections refused."),
    (
        "conn_yields",
        "connections_yielded_total",
        "Times a connection reached its request limit (option -R).",
    ),
    (
        "listen_disabled_num",
        "connections_listener_disabled_total",
        "Times the server stopped accepting at its connection limit.",
    ),
    ("bytes", "current_bytes", "Bytes that items occupy."),
    ("limit_maxbytes", "limit_bytes", "Bytes that items may occupy."),
    ("total_malloced", "malloced_bytes", "Bytes given to slab pages."),
    ("curr_items", "current_items", "Items stored now."),
    ("total_items", "items_total", "Items ever stored."),
    ("evictions", "items_evicted_total", "Valid items evicted to free memory."),
    (
        "reclaimed",
        "items_reclaimed_total",
        "Items stored in the place of an expired item.",
    ),
    ("store_too_large", "item_too_large_total", "Stores refused: item too large."),
    ("store_no_memory", "item_no_memory_total", "Stores refused: no memory."),
    ("direct_reclaims", "direct_reclaims_total", "Evictions by worker threads."),
    ("accepting_conns", "accepting_connections", "Whether connections are accepted."),
    ("lru_crawler_starts", "lru_crawler_starts_total", "Runs of the LRU crawler."),
    (
        "crawler_reclaimed",
        "lru_crawler_reclaimed_total",
        "Items that the LRU crawler freed.",
    ),
    (
        "crawler_items_checked",
        "lru_crawler_items_checked_total",
        "Items that the LRU crawler examined.",
    ),
    (
        "moves_to_cold",
        "lru_crawler_moves_to_cold_total",
        "Items moved to the COLD queue.",
    ),
    (
        "moves_to_warm",
        "lru_crawler_moves_to_warm_total",
        "Items moved to the WARM queue.",
    ),
    (
        "moves_within_lru",
        "lru_crawler_moves_within_lru_total",
        "Items moved within the HOT or WARM queue.",
    ),
    *(
        (f"extstore_{key}", f"extstore_{name}", f"External storage: {text}.")
        for key, name, text in (
            ("compact_lost", "compact_lost_total", "items lost in compaction"),
            ("compact_rescues", "compact_rescued_total", "items moved in compaction"),
            ("compact_skipped", "compact_skipped_total", "items dropped as inactive"),
            ("page_allocs", "pages_allocated_total", "pages allocated"),
            ("page_evictions", "pages_evicted_total", "pages evicted"),
            ("page_reclaims", "pages_reclaimed_total", "empty pages freed"),
            ("pages_free", "pages_free", "pages without items"),
            ("pages_used", "pages_used", "pages with items"),
            ("objects_evicted", "objects_evicted_total", "items evicted"),
            ("objects_read", "objects_read_total", "items read"),
            ("objects_written", "objects_written_total", "items written"),
            ("objects_used", "objects_used", "items stored"),
            ("bytes_evicted", "bytes_evicted_total", "bytes evicted"),
            ("bytes_read", "bytes_read_total", "bytes read"),
            ("bytes_written", "bytes_written_total", "bytes written"),
            ("bytes_used", "bytes_used", "bytes stored"),
            ("bytes_fragmented", "bytes_fragmented", "bytes allocated but unused"),
            ("limit_maxbytes", "bytes_limit", "bytes it may hold"),
            ("io_queue", "io_queue_depth", "requests waiting"),
        )
    ),
    *(
        (f"proxy_{name.removesuffix('_total')}", f"proxy_{name}", f"Proxy: {text}.")
        for name, text in (
            ("conn_requests_total", "backend connections opened"),
            ("conn_errors_total", "backend connections that failed"),
            ("conn_oom_total", "connections lost for lack of memory"),
            ("req_active", "requests under way"),
            ("config_reloads_total", "configuration reloads"),
            ("config_reload_fails_total", "configuration reloads that failed"),
            ("config_cron_runs_total", "runs of scheduled hooks"),
            ("config_cron_fails_total", "scheduled hooks that failed"),
            ("backend_marked_bad_total", "times a backend was marked bad"),
            ("backend_failed", "backends that are failed now"),
            ("request_failed_depth_total", "requests dropped at the depth limit"),
        )
    ),
    ("round_robin_fallback", "round_robin_fallback_total", "Round-robin fallbacks."),
    ("unexpected_napi_ids", "unexpected_napi_ids_total", "Unknown NAPI ids seen."),
)

SETTINGS: tuple[Row, ...] = (
    ("maxconns", "max_connections", "Connections that may be open at once."),
    ("lru_crawler", "lru_crawler_enabled", "Whether the LRU crawler runs."),
    ("lru_crawler_sleep", "lru_crawler_sleep", "The crawler's pause, microseconds."),
    (
        "lru_crawler_tocrawl",
        "lru_crawler_to_crawl",
        "Items per crawl at most, 0 for all.",
    ),
    (
        "lru_maintainer_thread",
        "lru_crawler_maintainer_thread",
        "Whether a thread maintains the LRU queues.",
    ),
    ("hot_lru_pct", "lru_crawler_hot_percent", "Share of the HOT queue."),
    ("warm_lru_pct", "lru_crawler_warm_percent", "Share of the WARM queue."),
    ("hot_max_factor", "lru_crawler_hot_max_factor", "HOT idle age limit, times COLD."),
    ("warm_max_factor", "lru_crawler_warm_max_factor", "WARM age limit, times COLD."),
)

ITEMS: tuple[Row, ...] = tuple(
    (key, f"slab_{name}", f"{text}, by slab class.")
    for key, name, text in (
        ("number", "current_items", "Items stored"),
        ("age", "items_age_seconds", "Age of the oldest item"),
        (
            "crawler_reclaimed",
            "items_crawler_reclaimed_total",
            "Items reclaimed by the crawler",
        ),
        ("evicted", "items_evicted_total", "Items evicted"),
        ("evicted_nonzero", "items_evicted_nonzero_total", "Evicted with a TTL"),
        ("evicted_time", "items_evicted_time_seconds", "Idle age of the last eviction"),
        ("evicted_unfetched", "items_evicted_unfetched_total", "Evicted, never read"),
        ("expired_unfetched", "items_expired_unfetched_total", "Expired, never read"),
        ("outofmemory", "items_outofmemory_total", "Stores without memory"),
        ("reclaimed", "items_reclaimed_total", "Items reclaimed"),
        ("tailrepairs", "items_tailrepairs_total", "Repairs of stuck items"),
        ("moves_to_cold", "items_moves_to_cold", "Items moved to COLD"),
        ("moves_to_warm", "items_moves_to_warm", "Items moved to WARM"),
        ("moves_within_lru", "items_moves_within_lru", "Items moved in their queue"),
        ("number_hot", "hot_items", "Items in the HOT queue"),
        ("number_warm", "warm_items", "Items in the WARM queue"),
        ("number_cold", "cold_items", "Items in the COLD queue"),
        ("number_temp", "temporary_items", "Items in the TEMPORARY queue"),
        ("age_hot", "hot_age_seconds", "Age of the oldest HOT item"),
        ("age_warm", "warm_age_seconds", "Age of the oldest WARM item"),
    )
)

SLABS: tuple[Row, ...] = tuple(
    (key, f"slab_{name}", f"{text}, by slab class.")
    for key, name, text in (
        ("chunk_size", "chunk_size_bytes", "Bytes of a chunk"),
        ("chunks_per_page", "chunks_per_page", "Chunks in a page"),
        ("total_pages", "current_pages", "Pages allocated"),
        ("total_chunks", "current_chunks", "Chunks allocated"),
        ("used_chunks", "chunks_used", "Chunks with an item"),
        ("free_chunks", "chunks_free", "Chunks without an item"),
        ("free_chunks_end", "chunks_free_end", "Unused chunks of the last page"),
        ("mem_requested", "mem_requested_bytes", "Bytes requested by items"),
    )
)

LRU_HITS = (("hot", "hits_to_hot"), ("warm", "hits_to_warm"), ("cold", "hits_to_cold"),
            ("temporary", "hits_to_temp"))  # fmt: skip

# Command, status, statistic.
COMMANDS = (
    *(
        (command, status, f"{command}_{plural}")
        for command in ("get", "delete", "incr", "decr", "cas", "touch")
        for status, plural in (("hit", "hits"), ("miss", "misses"))
    ),
    ("cas", "badval", "cas_badval"),
    ("flush", "hit", "cmd_flush"),
)


def _declare(rows: tuple[Row, ...], labels: tuple[str, ...] = ()) -> list[Metric]:
    """Return the metrics of a table; names that end in `_total` are counters."""
    return [
        Metric(
            f"memcached_{name}",
            "counter" if name.endswith("_total") else "gauge",
            text,
            labels,
        )
        for _, name, text in rows
    ]


METRICS = (
    Metric("memcached_up", "gauge", "Whether the server answered."),
    Metric(
        "keylag_memcached_full",
        "gauge",
        "Whether the server refused this read, because it has too many connections.",
    ),
    Metric("memcached_version", "gauge", "Always 1: the version.", ("version",)),
    Metric(
        "memcached_commands_total",
        "counter",
        "Requests by command and outcome.",
        ("command", "status"),
    ),
    *_declare((*GENERAL, *SETTINGS)),
    *_declare((*ITEMS, *SLABS), ("slab",)),
    Metric(
        "memcached_slab_lru_hits_total",
        "counter",
        "Reads that found their item, by slab class and queue.",
        ("slab", "lru"),
    ),
    Metric(
        "memcached_slab_commands_total",
        "counter",
        "Requests by slab class, command and outcome.",
        ("slab", "command", "status"),
    ),
)

"""Queries of *Cache*: layers, regions, round trips, and memcached itself."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.promql import hit_ratio, or_zero
from keylag_dashboards.queries import REPORTING

_IDS: Final = "invalidation region"
_VALUES: Final = f'keystone_cache_region!="{_IDS}"'
_BACKEND: Final = f'{_VALUES}, keystone_cache_layer="backend"'
LAYERS: Final[Mapping[str, tuple[str, str]]] = {
    "region_ids": (f'keystone_cache_region="{_IDS}"',) * 2,
    # What the request-local cache lacks goes to the backend; Redis bypasses it.
    "request_local": (_VALUES, f'{_VALUES}, keystone_cache_layer="request_local"'),
    "backend": (_BACKEND, _BACKEND),
}
"""The layers of a look-up, with the matchers of their look-ups and of their hits."""


def _gets(matchers: str) -> str:
    return f"""sum(rate(keystone_cache_calls_total{{KEYSTONE, {matchers},
        keystone_cache_operation="get"}}[RATE]))"""


def _layer_ratio(looked_up: str, hit: str) -> str:
    return hit_ratio(_gets(f'{hit}, keystone_cache_result="hit"'), _gets(looked_up))


def _memoized(by: str, matchers: str = "") -> str:
    return f"""sum by ({by}) (rate(
        keystone_cache_memoized_calls_total{{KEYSTONE{matchers}}}[RATE]))"""


def _functions(matchers: str = "") -> str:
    """Return the calls of each function over the time shown."""
    calls = f"""sum by (keystone_cache_region, keystone_cache_function) (increase(
        keystone_cache_memoized_calls_total{{KEYSTONE{matchers}}}[SHOWN]))"""
    return f"""label_replace({calls}, "keystone_cache_function", "$1:$2",
        "keystone_cache_function", "keystone\\\\.(.+?)(?:\\\\.core)?:(.+)")"""


_HIT: Final = ', keystone_cache_result="hit"'
_MISS: Final = ', keystone_cache_result="miss"'
_REGION: Final = "keystone_cache_region"
_CACHE_TIME: Final = """rate(keystone_request_phase_time_seconds_total{
    TOKENS, keystone_phase="cache"}[RATE])"""
_COMMANDS: Final = 'memcached_commands_total{MEMCACHED, command="get"'

QUERIES: Final[Mapping[str, str]] = {
    **{f"gets_{layer}": _gets(looked_up) for layer, (looked_up, _) in LAYERS.items()},
    **{f"ratio_{layer}": _layer_ratio(*matchers) for layer, matchers in LAYERS.items()},
    "region_ratio": hit_ratio(_memoized(_REGION, _HIT), _memoized(_REGION)),
    "function_calls": f"round({_functions()})",
    "function_misses": f"round({_functions(_MISS)})",
    "function_ratio": hit_ratio(_functions(_HIT), _functions()),
    "round_trip": f"""sum by (http_request_method) ({_CACHE_TIME})
        / (sum by (http_request_method) (
        rate(keystone_request_cache_calls_total{{TOKENS}}[RATE])) > 0)""",
    "per_call": f"""sum by (http_request_method) ({_CACHE_TIME})
        / (sum by (http_request_method) (
        rate(http_server_request_duration_seconds_count{{TOKENS}}[RATE])) > 0)""",
    "bytes": """sum by (keystone_cache_region) (
        rate(keystone_cache_io_bytes_total{KEYSTONE}[RATE]))""",
    "invalidations": or_zero(
        """sum by (keystone_cache_region) (
        rate(keystone_cache_invalidations_total{KEYSTONE}[RATE]))""",
        "keystone_cache_region",
        "no invalidations",
        REPORTING,
    ),
    "errors": or_zero(
        """sum by (keystone_cache_region, error_type) (
        rate(keystone_cache_errors_total{KEYSTONE}[RATE]))""",
        "error_type",
        "no errors",
        REPORTING,
    ),
    "memory_used": "memcached_current_bytes{MEMCACHED}",
    "memory_share": """memcached_current_bytes{MEMCACHED}
        / memcached_limit_bytes{MEMCACHED}""",
    "items": "memcached_current_items{MEMCACHED}",
    "evicted": "rate(memcached_items_evicted_total{MEMCACHED}[RATE])",
    "reclaimed": "rate(memcached_items_reclaimed_total{MEMCACHED}[RATE])",
    "no_memory": "rate(memcached_item_no_memory_total{MEMCACHED}[RATE])",
    "server_ratio": f"""
        sum by (instance) (rate({_COMMANDS}, status="hit"}}[RATE]))
        / (sum by (instance) (rate({_COMMANDS}}}[RATE])) > 0)""",
    "connections": "memcached_current_connections{MEMCACHED}",
    "connections_limit": """max(memcached_max_connections{MEMCACHED}) and on ()
        max(memcached_current_connections{MEMCACHED}
        / memcached_max_connections{MEMCACHED}) > 0.2""",
    "refused": """
        rate(memcached_connections_rejected_total{MEMCACHED}[RATE])
        + rate(memcached_connections_listener_disabled_total{MEMCACHED}[RATE])
        """,
    "flushed": """sum by (keystone_cache_region) (
        rate(keystone_cache_invalidations_total{KEYSTONE}[RATE])) > 0""",
}

"""Queries of *Cache*: layers, regions, round trips, and memcached itself."""

from collections.abc import Mapping
from typing import Final

_IDS: Final = "invalidation region"
LAYERS: Final[Mapping[str, str]] = {
    "region_ids": f'keystone_cache_region="{_IDS}"',
    "request_local": f"""keystone_cache_region!="{_IDS}",
        keystone_cache_layer="request_local\"""",
    "backend": f'keystone_cache_region!="{_IDS}", keystone_cache_layer="backend"',
}
"""The layers of a look-up, with their matchers."""


def _gets(matchers: str) -> str:
    return f"""sum(rate(keystone_cache_calls_total{{KEYSTONE, {matchers},
        keystone_cache_operation="get"}}[RATE]))"""


def _hit_ratio(matchers: str) -> str:
    return (
        f"""{_gets(f'{matchers}, keystone_cache_result="hit"')} / {_gets(matchers)}"""
    )


def _memoized(by: str, matchers: str = "") -> str:
    return f"""sum by ({by}) (rate(
        keystone_cache_memoized_calls_total{{KEYSTONE{matchers}}}[RATE]))"""


def _functions(matchers: str = "") -> str:
    """Return the calls of each function over the time shown."""
    return f"""sum by (keystone_cache_region, keystone_cache_function) (increase(
        keystone_cache_memoized_calls_total{{KEYSTONE{matchers}}}[SHOWN]))"""


_HIT: Final = ', keystone_cache_result="hit"'
_MISS: Final = ', keystone_cache_result="miss"'
_REGION: Final = "keystone_cache_region"
_CACHE_TIME: Final = """rate(keystone_request_phase_time_seconds_total{
    TOKENS, keystone_phase="cache"}[RATE])"""
_COMMANDS: Final = 'memcached_commands_total{MEMCACHED, command="get"'

QUERIES: Final[Mapping[str, str]] = {
    **{f"gets_{layer}": _gets(matchers) for layer, matchers in LAYERS.items()},
    **{f"ratio_{layer}": _hit_ratio(matchers) for layer, matchers in LAYERS.items()},
    "region_ratio": f"{_memoized(_REGION, _HIT)} / {_memoized(_REGION)}",
    "function_calls": _functions(),
    "function_misses": _functions(_MISS),
    "function_ratio": f"{_functions(_HIT)} / {_functions()}",
    "round_trip": f"""sum by (http_request_method) ({_CACHE_TIME})
        / sum by (http_request_method) (
        rate(keystone_request_cache_calls_total{{TOKENS}}[RATE]))""",
    "per_call": f"""sum by (http_request_method) ({_CACHE_TIME})
        / sum by (http_request_method) (
        rate(http_server_request_duration_seconds_count{{TOKENS}}[RATE]))""",
    "bytes": """sum by (keystone_cache_region, network_io_direction) (
        rate(keystone_cache_io_bytes_total{KEYSTONE}[RATE]))""",
    "invalidations": """sum by (keystone_cache_region) (
        rate(keystone_cache_invalidations_total{KEYSTONE}[RATE]))""",
    "errors": """sum by (keystone_cache_region, error_type) (
        rate(keystone_cache_errors_total{KEYSTONE}[RATE]))""",
    "memory_used": "memcached_current_bytes{MEMCACHED}",
    "memory_limit": "memcached_limit_bytes{MEMCACHED}",
    "items": "memcached_current_items{MEMCACHED}",
    "evicted": "rate(memcached_items_evicted_total{MEMCACHED}[RATE])",
    "reclaimed": "rate(memcached_items_reclaimed_total{MEMCACHED}[RATE])",
    "no_memory": "rate(memcached_item_no_memory_total{MEMCACHED}[RATE])",
    "server_ratio": f"""
        sum by (instance) (rate({_COMMANDS}, status="hit"}}[RATE]))
        / sum by (instance) (rate({_COMMANDS}}}[RATE]))""",
    "connections": "memcached_current_connections{MEMCACHED}",
    "connections_limit": "memcached_max_connections{MEMCACHED}",
    "refused": """
        rate(memcached_connections_rejected_total{MEMCACHED}[RATE])
        + rate(memcached_connections_listener_disabled_total{MEMCACHED}[RATE])
        """,
    "flushed": """sum by (keystone_cache_region) (
        increase(keystone_cache_invalidations_total{KEYSTONE}[RATE])) > 0""",
}

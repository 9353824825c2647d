"""The memcached source: statistics under the names of the official exporter."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheError, MemcacheUnknownCommandError

from keylag_exporters.families import Families
from keylag_exporters.memcached_metrics import (
    COMMANDS,
    GENERAL,
    ITEMS,
    LRU_HITS,
    METRICS,
    SETTINGS,
    SLABS,
)
from keylag_exporters.model import Option, SourceType, UnreachableError
from keylag_exporters.settings import parse_address, split_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Statistics = dict[str, Any]
"""Values are bytes, or numbers and booleans where pymemcache converts them."""

_BOOLEANS = {b"yes": 1, b"no": 0}


class MemcachedSource:
    """Reads the statistics of one server."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._place = settings["address"]
        is_socket = "/" in self._place
        self._address: Any = (
            f"unix:{self._place}" if is_socket else split_address(self._place)
        )
        self._timeout = settings["timeout"]

    def collect(self) -> Families:
        """Return the server's families.

        Raises UnreachableError with `memcached_up` 0 if the server does not answer.
        """
        families = Families(METRICS)
        client = Client(
            self._address, connect_timeout=self._timeout, timeout=self._timeout
        )
        try:
            general = _fetch(client)
            slabs = _fetch(client, "slabs")
            items = _group_by_slab(_fetch(client, "items"), prefix="items:")
            settings = _fetch(client, "settings")
        except (OSError, MemcacheError) as error:
            families.add("memcached_up", 0)
            # It knows `stats`: what it refuses is one more connection.
            is_full = isinstance(error, MemcacheUnknownCommandError)
            families.add("keylag_memcached_full", int(is_full))
            message = f"cannot read statistics from {self._place}: {error!r}"
            raise UnreachableError(message, families) from error
        finally:
            client.close()
        families.add("memcached_up", 1)
        families.add("keylag_memcached_full", 0)
        families.add("memcached_version", 1, general.get("version", b"").decode())
        _add_table(families, GENERAL, slabs | general)
        _add_table(families, SETTINGS, settings)
        _add_commands(families, general)
        _add_slabs(families, _group_by_slab(slabs, prefix=""), items)
        return families

    def close(self) -> None:
        """Do nothing: each read has its own connection."""


def _fetch(client: Client, *arguments: str) -> Statistics:
    statistics = client.stats(*arguments)  # type: ignore[no-untyped-call]
    return {name.decode(): value for name, value in statistics.items()}


def _group_by_slab(statistics: Statistics, prefix: str) -> dict[str, Statistics]:
    """Return statistics such as `items:1:number` by slab class."""
    found: defaultdict[str, Statistics] = defaultdict(dict)
    for name, value in statistics.items():
        slab, colon, rest = name.removeprefix(prefix).partition(":")
        if colon and slab.isdigit():
            found[slab][rest] = value
    return found


def _to_float(value: Any) -> float:
    return float(_BOOLEANS.get(value, value))


def _add_table(
    families: Families,
    rows: Iterable[tuple[str, str, str]],
    statistics: Statistics,
    *labels: str,
) -> None:
    for key, name, _ in rows:
        if key in statistics:
            value = _to_float(statistics[key])
            families.add(f"memcached_{name}", value, *labels)


def _add_commands(families: Families, statistics: Statistics, *slab: str) -> None:
    """Add requests by command and status; `cmd_set` also counts CAS."""
    name = "memcached_slab_commands_total" if slab else "memcached_commands_total"
    for command, status, key in COMMANDS:
        if key in statistics:
            families.add(name, float(statistics[key]), *slab, command, status)
    if "cmd_set" in statistics:
        cas = ("cas_hits", "cas_misses", "cas_badval")
        sets = float(statistics["cmd_set"]) - sum(
            float(statistics.get(key, 0)) for key in cas
        )
        families.add(name, sets, *slab, "set", "hit")


def _add_slabs(
    families: Families, slabs: dict[str, Statistics], items: dict[str, Statistics]
) -> None:
    for slab, statistics in slabs.items():
        # mem_requested moved from `slabs` to `items` in 1.5
        _add_table(families, SLABS, items.get(slab, {}) | statistics, slab)
        _add_commands(families, statistics, slab)
    for slab, statistics in items.items():
        _add_table(families, ITEMS, statistics, slab)
        for lru, key in LRU_HITS:
            if key in statistics:
                value = float(statistics[key])
                families.add("memcached_slab_lru_hits_total", value, slab, lru)


SOURCE_TYPE = SourceType(
    name="memcached",
    help="Export memcached's statistics."
    " Metric names are those of the official memcached_exporter.",
    options=(
        Option(
            "address",
            "HOST:PORT of the server, or the path of its socket.",
            parse_address,
            "127.0.0.1:11211",
        ),
    ),
    metrics=METRICS,
    create=MemcachedSource,
    port=9150,
)

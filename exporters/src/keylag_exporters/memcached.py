"""The memcached source: what the official exporter tells, under its names."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheError

from keylag_exporters.families import Families
from keylag_exporters.memcached_tables import (
    COMMANDS,
    GENERAL,
    ITEMS,
    LRU_HITS,
    METRICS,
    SETTINGS,
    SLABS,
)
from keylag_exporters.model import Kind, Option, UnreachableError
from keylag_exporters.settings import address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Statistics = dict[str, str]

_WORDS = {"yes": "1", "no": "0", "True": "1", "False": "0"}


class Memcached:
    """Asks one server for its statistics on every scrape."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        host, _, port = settings["address"].rpartition(":")
        self._address = (host or "127.0.0.1", int(port))
        self._timeout = settings["timeout"]

    def collect(self) -> Families:
        """Return the server's families, or raise with a `memcached_up` of 0."""
        families = Families(METRICS)
        client = Client(
            self._address, connect_timeout=self._timeout, timeout=self._timeout
        )
        try:
            general = _ask(client)
            slabs = _ask(client, "slabs")
            items = _by_slab(_ask(client, "items"), prefix="items:")
            settings = _ask(client, "settings")
        except (OSError, MemcacheError) as error:
            families.add("memcached_up", 0)
            host, port = self._address
            message = f"no statistics at {host}:{port}: {error!r}"
            raise UnreachableError(message, families) from error
        finally:
            client.close()
        families.add("memcached_up", 1)
        families.add("memcached_version", 1, general.get("version", ""))
        _add(families, GENERAL, slabs | general)
        _add(families, SETTINGS, settings)
        _add_commands(families, general)
        _add_slabs(families, _by_slab(slabs, prefix=""), items)
        return families

    def close(self) -> None:
        """Do nothing: no connection outlives a scrape."""


def _ask(client: Client, *what: str) -> Statistics:
    """Return one kind of statistics as text."""
    found = client.stats(*what)  # type: ignore[no-untyped-call]
    return {_text(name): _text(value) for name, value in found.items()}


def _text(value: Any) -> str:
    """Return a name or value as the server wrote it, or nearly so."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _by_slab(statistics: Statistics, prefix: str) -> dict[str, Statistics]:
    """Return statistics like `items:1:number` by slab class; totals are left out."""
    found: defaultdict[str, Statistics] = defaultdict(dict)
    for name, value in statistics.items():
        slab, colon, rest = name.removeprefix(prefix).partition(":")
        if colon and slab.isdigit():
            found[slab][rest] = value
    return found


def _number(value: str) -> float:
    """Return a statistic as a number; a yes is a one."""
    return float(_WORDS.get(value, value))


def _add(
    families: Families,
    rows: Iterable[tuple[str, str, str]],
    statistics: Statistics,
    *labels: str,
) -> None:
    """Add every statistic of a table that the server has."""
    for key, name, _ in rows:
        if key in statistics:
            value = _number(statistics[key])
            families.add(f"memcached_{name}", value, *labels)


def _add_commands(families: Families, statistics: Statistics, *slab: str) -> None:
    """Add requests by command; the server counts a CAS as a SET once more."""
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
    """Add what is told of each slab class."""
    for slab, statistics in slabs.items():
        # mem_requested moved from `slabs` to `items` in 1.5
        _add(families, SLABS, items.get(slab, {}) | statistics, slab)
        _add_commands(families, statistics, slab)
    for slab, statistics in items.items():
        _add(families, ITEMS, statistics, slab)
        for lru, key in LRU_HITS:
            if key in statistics:
                value = float(statistics[key])
                families.add("memcached_slab_lru_hits_total", value, slab, lru)


KIND = Kind(
    name="memcached",
    help="Tell what the official memcached_exporter tells, under its names.",
    options=(
        Option("address", "HOST:PORT of the server.", address, "127.0.0.1:11211"),
    ),
    metrics=METRICS,
    open=Memcached,
    port=9150,
)

"""The table of sources: sub-commands, flags, help and the reference come from it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keylag_exporters.model import Kind

# Modules with a KIND. They are imported when they are needed: a log that is read
# once must not wait for the clients of three servers.
SOURCES = {
    "slow-log": "keylag_exporters.slow_log.kind",
    "proxysql": "keylag_exporters.proxysql",
    "revocations": "keylag_exporters.revocations",
    "memcached": "keylag_exporters.memcached",
    "uwsgi": "keylag_exporters.uwsgi",
}
ALL_PORT = 9720


def kind(name: str) -> Kind:
    """Return the row of one source."""
    found: Kind = import_module(SOURCES[name]).KIND
    return found


def kinds() -> tuple[Kind, ...]:
    """Return the whole table."""
    return tuple(map(kind, SOURCES))

"""The table of sources, from which sub-commands, help and reference are made."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keylag_exporters.model import SourceType

# Modules with a SOURCE_TYPE. They are imported on demand, so that `slow-log --once`
# starts without the clients of three servers.
SOURCES = {
    "slow-log": "keylag_exporters.slow_log.source_type",
    "proxysql": "keylag_exporters.proxysql",
    "revocations": "keylag_exporters.revocations",
    "memcached": "keylag_exporters.memcached",
    "uwsgi": "keylag_exporters.uwsgi",
    "host": "keylag_exporters.host",
    "processes": "keylag_exporters.processes",
    "mysql": "keylag_exporters.mysql_status",
    "probe": "keylag_exporters.probe",
}
ALL_PORT = 9720


def load_source_type(name: str) -> SourceType:
    """Import and return the declaration of one source."""
    found: SourceType = import_module(SOURCES[name]).SOURCE_TYPE
    return found


def load_source_types() -> tuple[SourceType, ...]:
    """Import and return the declarations of all sources."""
    return tuple(map(load_source_type, SOURCES))

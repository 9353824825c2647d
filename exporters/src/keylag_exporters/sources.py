"""The table of sources: sub-commands, flags, help and the reference come from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keylag_exporters import memcached, proxysql, revocations
from keylag_exporters.slow_log import source as slow_log

if TYPE_CHECKING:
    from keylag_exporters.model import Kind

SOURCES: tuple[Kind, ...] = (
    slow_log.KIND,
    proxysql.KIND,
    revocations.KIND,
    memcached.KIND,
)
ALL_PORT = 9720

"""Declaration of the slow-log source.

It imports the source on demand, so that `--once` starts without the follower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keylag_exporters.model import Option, SourceType
from keylag_exporters.settings import parse_count
from keylag_exporters.slow_log.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from keylag_exporters.model import Source


def _create(settings: Mapping[str, Any]) -> Source:
    from keylag_exporters.slow_log.source import SlowLogSource  # noqa: PLC0415 -- see the module docstring

    return SlowLogSource(settings)


SOURCE_TYPE = SourceType(
    name="slow-log",
    help="Count the statements of a MySQL or MariaDB slow log.",
    options=(
        Option("file", "The slow log to follow.", required=True),
        Option("state", "File that keeps position and counters over a restart."),
        Option(
            "from-start",
            "Start at the beginning of the log instead of its end.",
            bool,
            default=False,
        ),
        Option("top", "Number of classes with series of their own.", parse_count, 100),
    ),
    metrics=METRICS,
    create=_create,
    port=9721,
)

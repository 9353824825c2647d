"""The dashboards: one module for the panels and layout of each."""

from typing import Final

from keylag_dashboards.boards import (
    cache,
    experiment,
    galera,
    home,
    host,
    revocation,
    services,
    sql,
    tokens,
    workers,
)
from keylag_dashboards.model import Board

BOARDS: Final[tuple[Board, ...]] = (
    home.BOARD,
    tokens.BOARD,
    sql.BOARD,
    galera.BOARD,
    cache.BOARD,
    revocation.BOARD,
    workers.BOARD,
    host.BOARD,
    services.BOARD,
    experiment.BOARD,
)

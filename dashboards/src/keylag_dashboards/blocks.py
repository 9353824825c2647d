"""The headline blocks of the breakdown, from the model itself, and tables of them."""

from collections.abc import Mapping
from typing import Final

from keylag_otel.model import BLOCK_OF_CELL, BLOCKS, CELLS, OPERATIONS

TITLES: Final[Mapping[str, str]] = {
    "sql": "SQL",
    "cache": "cache",
    "revocation": "revocation",
    "password_hash": "password hash",
    "token_crypto": "token crypto",
    "orm": "ORM",
    "other": "other",
}
"""How each block is called on a page, in the order of the stack."""


def matchers(block: str) -> str:
    """Return the matchers that choose exactly the cells of a block."""
    cells = [CELLS[cell] for cell, of in BLOCK_OF_CELL.items() if of == block]
    operations = {operation for _, operation in cells}
    phases = "|".join(sorted({phase for phase, _ in cells}))
    missing = "|".join(sorted(set(OPERATIONS) - operations))
    return f'keystone_operation!~"{missing}", keystone_phase=~"{phases}"'


MATCHERS: Final[Mapping[str, str]] = {block: matchers(block) for block in BLOCKS}

_COUNT: Final = "http_server_request_duration_seconds_count"
_SUM: Final = "http_server_request_duration_seconds_sum"
_PHASES: Final = "keystone_request_phase_time_seconds_total"


def table(name: str, word: str, by: str) -> dict[str, str]:
    """Return the queries of a table of the stack by a label, over the time shown.

    `word` stands for the matchers of the calls; the queries' names begin with `name`.
    """

    def grown(metric: str, more: str = "") -> str:
        return f"sum by ({by}) (increase({metric}{{{word}{more}}}[SHOWN]))"

    calls = grown(_COUNT)
    blocks = {
        f"{name}_{block}": f"({grown(_PHASES, f', {m}')} or 0 * {calls}) / {calls}"
        for block, m in MATCHERS.items()
    }
    wall = f"{grown(_SUM)} / {calls}"
    return {f"{name}_calls": calls, f"{name}_wall": wall, **blocks}


def columns(name: str) -> dict[str, str]:
    """Return the headings of such a table, and the name of the query of each."""
    headings = {"calls": "calls", "wall": "wall", **{t: b for b, t in TITLES.items()}}
    return {heading: f"{name}_{query}" for heading, query in headings.items()}

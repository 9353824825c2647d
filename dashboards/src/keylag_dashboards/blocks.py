"""The headline blocks of the breakdown as matchers, from the model itself."""

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

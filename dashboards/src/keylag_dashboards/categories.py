"""The categories of the breakdown, from the model itself, and tables of them."""

from collections.abc import Mapping
from typing import Final

from keylag_otel.model import CATEGORIES, CATEGORY_OF_CELL, CELLS, OPERATIONS

TITLES: Final[Mapping[str, str]] = {
    "sql": "SQL",
    "cache": "cache",
    "revocation": "revocation",
    "password_hash": "password hash",
    "token_crypto": "token crypto",
    "orm": "ORM",
    "other": "other",
}
"""How each category is called on a page, in the order of the stack."""


def matchers(category: str) -> str:
    """Return the matchers that choose exactly the cells of a category."""
    cells = [CELLS[cell] for cell, of in CATEGORY_OF_CELL.items() if of == category]
    operations = {operation for _, operation in cells}
    phases = "|".join(sorted({phase for phase, _ in cells}))
    missing = "|".join(sorted(set(OPERATIONS) - operations))
    return f'keystone_operation!~"{missing}", keystone_phase=~"{phases}"'


MATCHERS: Final[Mapping[str, str]] = {
    category: matchers(category) for category in CATEGORIES
}

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
    categories = {
        f"{name}_{category}": f"({grown(_PHASES, f', {m}')} or 0 * {calls}) / {calls}"
        for category, m in MATCHERS.items()
    }
    wall = f"{grown(_SUM)} / {calls}"
    return {f"{name}_calls": calls, f"{name}_wall": wall, **categories}


def columns(name: str) -> dict[str, str]:
    """Return the headings of such a table, and the name of the query of each."""
    headings = {"calls": "calls", "wall": "wall", **{t: b for b, t in TITLES.items()}}
    return {heading: f"{name}_{query}" for heading, query in headings.items()}

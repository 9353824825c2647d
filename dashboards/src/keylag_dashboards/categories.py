"""The categories of the breakdown, as matchers and as tables."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.model import Column
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
"""Title of each category, in the order of the stack."""


def matchers(category: str) -> str:
    """Return the matchers that select exactly the cells of a category."""
    cells = [CELLS[cell] for cell, of in CATEGORY_OF_CELL.items() if of == category]
    operations = {operation for _, operation in cells}
    phases = "|".join(sorted({phase for phase, _ in cells}))
    missing = "|".join(sorted(set(OPERATIONS) - operations))
    return f'keystone_operation!~"{missing}", keystone_phase=~"{phases}"'


MATCHERS: Final[Mapping[str, str]] = {
    category: matchers(category) for category in CATEGORIES
}

_CALLS: Final = "keylag:http_server_request_duration_seconds_count:rate"
_CATEGORIES: Final = "keylag:token_category_seconds:rate"


def breakdown_queries(name: str, placeholder: str, by: str) -> dict[str, str]:
    """Return the queries of a breakdown table by a label, over the time shown.

    Their names begin with `name`; `placeholder` stands for the matchers of the calls.
    The categories add up to the wall time.
    """

    def total(series: str, more: str = "") -> str:
        shown = f"sum_over_time({series}{{{placeholder}{more}}}[SHOWN])"
        return f"sum by ({by}) ({shown} * EVERY)"

    calls = f"({total(_CALLS)} > 0)"
    categories = {
        f"{name}_{category}": (
            f"""({total(_CATEGORIES, f', category="{title}"')} or 0 * {calls})
            / {calls}"""
        )
        for category, title in TITLES.items()
    }
    wall = f"{total(_CATEGORIES)} / {calls}"
    return {f"{name}_calls": f"round({calls})", f"{name}_wall": wall, **categories}


def breakdown_table(name: str) -> dict[str, str]:
    """Return the columns of a breakdown table: heading to query name."""
    headings = {"calls": "calls", "wall": "wall", **{t: b for b, t in TITLES.items()}}
    return {heading: f"{name}_{query}" for heading, query in headings.items()}


def breakdown_columns(label: str) -> dict[str, Column]:
    """Return how a breakdown table shows its columns."""
    wide = {"password hash": 125, "token crypto": 105, "revocation": 90}
    return {
        label: Column(),
        "calls": Column("locale", 75, 0),
        **{
            heading: Column("s", wide.get(heading, 70))
            for heading in ("wall", *TITLES.values())
        },
    }

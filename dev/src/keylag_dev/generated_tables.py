"""Tables that modules write into pages, between two comments with the table's name.

<!-- savings, by `python -m keylag_dev.upstream_page` -->
| ... |

<!-- end of savings -->
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

BLOCK: Final = re.compile(
    r"(<!-- (?P<name>\w+), by `python -m keylag_dev\.\w+` -->\n)"
    r".*?(<!-- end of (?P=name) -->)",
    re.DOTALL,
)


def replace_tables(text: str, tables: Mapping[str, Iterable[str]]) -> str:
    """Return a page with the lines of its tables replaced, by their names."""

    def table(found: re.Match[str]) -> str:
        return "\n".join([found[1], *tables[found["name"]], "", found[3]])

    return BLOCK.sub(table, text)

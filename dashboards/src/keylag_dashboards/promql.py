"""PromQL with placeholders in capitals: `rate(metric{TOKENS, le="1"}[RATE])`.

All other text is PromQL. `config.PLACEHOLDERS` has their values.
"""

import re
from typing import Final

from keylag_dashboards.config import PLACEHOLDERS

_IN_CAPITALS: Final = re.compile(rf"\b({'|'.join(PLACEHOLDERS)})\b")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_NO_METRICS: Final = re.compile(
    r"\{[^}]*\}|\[[^\]]*\]"  # matchers and ranges
    r"|\b(?:by|without|on|ignoring|group_left|group_right)\s*(?:\([^)]*\))?"
    r"|\boffset\s+\w+"
)
_WORD: Final = re.compile(r"(?<![\w:.])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])")
_OPERATORS: Final = frozenset({"and", "or", "unless", "bool"})


def expand(query: str) -> str:
    """Return a query with its placeholders replaced, on one line."""
    filled = _IN_CAPITALS.sub(lambda found: PLACEHOLDERS[found[1]], query)
    return " ".join(filled.split())


def metric_names(query: str) -> frozenset[str]:
    """Return the names of the metrics in an expanded query."""
    # Strings go first: a matcher's value may hold a brace.
    bare = _NO_METRICS.sub(" ", _STRING.sub("", query))
    return frozenset(_WORD.findall(bare)) - _OPERATORS

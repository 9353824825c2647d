"""PromQL with words in capitals: `rate(metric{TOKENS, le="1"}[RATE])`.

A query is written as Prometheus takes it, but for the words of `config.WORDS`.
"""

import re
from typing import Final

from keylag_dashboards.config import WORDS

_IN_CAPITALS: Final = re.compile(rf"\b({'|'.join(WORDS)})\b")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_NO_METRICS: Final = re.compile(
    r"\{[^}]*\}|\[[^\]]*\]"  # matchers and ranges
    r"|\b(?:by|without|on|ignoring|group_left|group_right)\s*(?:\([^)]*\))?"
    r"|\boffset\s+\w+"
)
_WORD: Final = re.compile(r"(?<![\w:.])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])")
_OPERATORS: Final = frozenset({"and", "or", "unless", "bool"})


def expand(query: str) -> str:
    """Return a query with its words filled in, on one line."""
    filled = _IN_CAPITALS.sub(lambda found: WORDS[found[1]], query)
    return " ".join(filled.split())


def metric_names(query: str) -> frozenset[str]:
    """Return the names of the metrics that an expanded query asks for."""
    # Strings go first: a matcher's value may hold a brace.
    bare = _NO_METRICS.sub(" ", _STRING.sub("", query))
    return frozenset(_WORD.findall(bare)) - _OPERATORS

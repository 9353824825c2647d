"""PromQL with placeholders in capitals: `rate(metric{TOKENS, le="1"}[RATE])`.

All other text is PromQL. `config.PLACEHOLDERS` has their values.  `or_zero` and `named`
are for results that would else be missing or have no name.
"""

import re
from typing import Final

from keylag_dashboards.config import FINE, PLACEHOLDERS

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
    fine = query.replace(PLACEHOLDERS["RECORDED"], FINE)
    bare = _NO_METRICS.sub(" ", _STRING.sub("", fine))
    return frozenset(_WORD.findall(bare)) - _OPERATORS


def or_zero(query: str, label: str, name: str, reporting: str) -> str:
    """Return a query whose result is a 0 with a name where it has none.

    `reporting` has a result as long as the metric's sender works: then there is nothing
    to count, otherwise nothing is known.
    """
    zero = f"0 * sum({reporting})"
    return f"""{query} or on ()
        label_replace({zero}, "{label}", "{name}", "", "")"""


def named(query: str, label: str, name: str) -> str:
    """Return a query whose series without a label have a name in it."""
    return f'label_replace({query}, "{label}", "{name}", "{label}", "")'


def hit_ratio(hits: str, calls: str) -> str:
    """Return a query of hits by calls, 0 if there were only misses."""
    return f"({hits} or 0 * {calls}) / ({calls} > 0)"


def with_spaces(query: str, label: str) -> str:
    """Return a query in whose label `password_hash` reads `password hash`."""
    return f'label_replace({query}, "{label}", "$1 $2", "{label}", "(.+)_(.+)")'

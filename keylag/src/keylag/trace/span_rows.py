"""Collapses similar sibling spans into one display row.

A validation without a cache has hundreds of statements of a few dozen classes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from keylag.phases import category_of
from keylag.trace.explanation import Explanation
from keylag.trace.model import (
    FUNCTION,
    METHOD,
    OPERATION,
    PHASE,
    ROUTE,
    SERVICE,
    STATEMENT,
    Span,
)

_OTHER: Final = "other"
"""Name of the unspecific phase and of the unspecific operation."""
_UNNAMED: Final = "Keystone's own Python"


@dataclass(frozen=True)
class SpanRow:
    """Similar sibling spans; times in seconds, `count` in calls."""

    depth: int
    label: str
    category: str
    count: int
    seconds: float
    """Total duration, including descendants."""
    self_seconds: float


def span_rows(explanation: Explanation) -> Iterator[SpanRow]:
    """Yield the rows of a trace, parents first; nothing without a trace."""
    if explanation.trace:
        yield from _group_siblings(explanation, explanation.trace.spans, 0)


def _group_siblings(
    explanation: Explanation, spans: Iterable[Span], depth: int
) -> Iterator[SpanRow]:
    groups: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for span in spans:
        groups[span_label(explanation, span), category_of(span.cell)].append(span)
    for (name, category), group in groups.items():
        yield SpanRow(
            depth,
            name,
            category,
            sum(span.calls for span in group),
            sum(span.seconds for span in group),
            sum(span.self_seconds for span in group),
        )
        children = [child for span in group for child in span.children]
        yield from _group_siblings(explanation, children, depth + 1)


def span_label(explanation: Explanation, span: Span) -> str:
    """Return the label of a span: its statement, request, function, or step."""
    attributes = span.attributes
    if STATEMENT in attributes:
        return explanation.classes[attributes[STATEMENT]].statement
    if METHOD in attributes and SERVICE in attributes:
        return " ".join(
            [attributes[SERVICE], attributes[METHOD], attributes.get(ROUTE, "")]
        ).strip()
    if FUNCTION in attributes:
        return _shorten_function(attributes[FUNCTION])
    parts = [attributes.get(name, "") for name in (METHOD, ROUTE, PHASE, OPERATION)]
    new = (part for part in parts if part not in span.name and part != _OTHER)
    names = [name for name in (span.name, *new) if name != _OTHER]
    return " ".join(dict.fromkeys(names)) or _UNNAMED


def _shorten_function(function: str) -> str:
    # The package is redundant beside the class or module.
    parts = [part for part in function.split(".") if part != "<locals>"]
    return ".".join(parts[-2:])

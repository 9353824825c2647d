"""The spans of a call as rows to show: siblings that are alike are gathered in one.

A validation without a cache has hundreds of statements of a few dozen classes.
"""

import re
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

_NOTHING: Final = "other"
"""What a phase or operation is called that is none in particular."""
_OF_NO_STEP: Final = "Keystone's own Python"
_COLUMNS: Final = re.compile(r"^(select) .*? (from) ")


@dataclass(frozen=True)
class Row:
    """Spans beside each other that are alike; times in seconds.

    `count` is of the calls that they stand for.
    """

    depth: int
    label: str
    category: str
    count: int
    seconds: float
    """Of all of them together, with what is below."""
    self_seconds: float


def rows(explanation: Explanation) -> Iterator[Row]:
    """Give the rows of a trace, each before those below it; none without a trace."""
    if explanation.trace:
        yield from _rows(explanation, explanation.trace.spans, 0)


def _rows(explanation: Explanation, spans: Iterable[Span], depth: int) -> Iterator[Row]:
    alike: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for span in spans:
        alike[label(explanation, span), category_of(span.cell)].append(span)
    for (name, category), group in alike.items():
        yield Row(
            depth,
            name,
            category,
            sum(span.calls for span in group),
            sum(span.seconds for span in group),
            sum(span.self_seconds for span in group),
        )
        below = [child for span in group for child in span.children]
        yield from _rows(explanation, below, depth + 1)


def label(explanation: Explanation, span: Span) -> str:
    """Name a span: by its statement, its request, its function, or its step."""
    found = span.attributes
    if STATEMENT in found:
        return shortened(explanation.classes[found[STATEMENT]].fingerprint)
    if METHOD in found and SERVICE in found:
        return " ".join([found[SERVICE], found[METHOD], found.get(ROUTE, "")]).strip()
    if FUNCTION in found:
        return _short(found[FUNCTION])
    words = [found.get(name, "") for name in (METHOD, ROUTE, PHASE, OPERATION)]
    new = (word for word in words if word not in span.name and word != _NOTHING)
    named = [word for word in (span.name, *new) if word != _NOTHING]
    return " ".join(dict.fromkeys(named)) or _OF_NO_STEP


def _short(function: str) -> str:
    """Leave out a function's package: its class or its module says enough."""
    parts = [part for part in function.split(".") if part != "<locals>"]
    return ".".join(parts[-2:])


def shortened(fingerprint: str) -> str:
    """Leave out the columns that a statement asks for."""
    return _COLUMNS.sub(r"\1 … \2 ", fingerprint)

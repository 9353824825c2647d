"""An explanation as one self-contained HTML page with a flame graph."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.phases import (
    CATEGORY_NAMES,
    OPERATIONS,
    PHASES,
    category_of,
    sort_known_first,
)
from keylag.report.formatting import format_ms, format_percent
from keylag.report.jinja import jinja_environment
from keylag.state import write_output
from keylag.trace.explanation import Explanation
from keylag.trace.model import Span
from keylag.trace.span_rows import span_label

ROW_HEIGHT: Final = 20
"""Height of a span in pixels."""
_MIN_LABEL_WIDTH: Final = 6.0
"""Smallest width of a labelled span, in per cent of the graph."""


@dataclass(frozen=True)
class FlameRect:
    """A span in the graph; `left` and `width` are per cent of the graph."""

    category: str
    left: float
    width: float
    top: int
    text: str
    tip: str


def write_html(explanation: Explanation, path: Path) -> None:
    """Write the page; creates the folder.  Raises OSError."""
    write_output(path, render_html(explanation))


def render_html(explanation: Explanation) -> str:
    """Return the HTML of the page."""
    flames = list(_layout_flames(explanation))
    return (
        jinja_environment()
        .get_template("explain.html.j2")
        .render(
            explanation=explanation,
            flames=flames,
            height=max((flame.top for flame in flames), default=0) + ROW_HEIGHT,
            row=ROW_HEIGHT,
            categories=CATEGORY_NAMES,
            matrix=_phase_operation_matrix(explanation),
            ms=lambda seconds: format_ms(seconds, 2),
            per_cent=format_percent,
        )
    )


def _layout_flames(explanation: Explanation) -> Iterator[FlameRect]:
    if explanation.trace is None:
        return
    total = max(span.end for span in explanation.trace.spans) or 1.0

    def rects(spans: Sequence[Span], depth: int) -> Iterator[FlameRect]:
        for span in spans:
            name, width = span_label(explanation, span), 100 * span.seconds / total
            yield FlameRect(
                category=category_of(span.cell),
                left=100 * span.start / total,
                width=width,
                top=depth * ROW_HEIGHT,
                text=name if width >= _MIN_LABEL_WIDTH else "",
                tip=f"{name}: {format_ms(span.seconds, 2)} ms",
            )
            yield from rects(span.children, depth + 1)

    yield from rects(explanation.trace.spans, 0)


def _phase_operation_matrix(explanation: Explanation) -> dict[str, object]:
    operations = sort_known_first(
        {operation for _, operation in explanation.cells}, OPERATIONS
    )
    phases = sort_known_first({phase for phase, _ in explanation.cells}, PHASES)
    return {
        "operations": operations,
        "rows": [
            (p, [explanation.cells.get((p, o)) for o in operations]) for p in phases
        ],
    }

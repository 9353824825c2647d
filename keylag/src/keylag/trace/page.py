"""An explanation as one self-contained page: a flame graph, and all statements."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.phases import CATEGORY_NAMES, OPERATIONS, PHASES, category_of, in_order
from keylag.report.pages import templates
from keylag.report.rows import ms, per_cent
from keylag.state import write_output
from keylag.trace.explanation import Explanation
from keylag.trace.model import Span
from keylag.trace.rows import label

ROW: Final = 20
"""Height of a span, in pixels."""
_LABEL_FROM: Final = 6.0
"""Per cent of the width that a span needs to have its name in it."""


@dataclass(frozen=True)
class Flame:
    """A span in the graph; `left` and `width` in per cent of the whole."""

    category: str
    left: float
    width: float
    top: int
    text: str
    tip: str


def write(found: Explanation, path: Path) -> None:
    """Write the page; its folder is made if need be."""
    write_output(path, render(found))


def render(found: Explanation) -> str:
    """Return the page."""
    flames = list(_flames(found))
    return (
        templates()
        .get_template("explain.html.j2")
        .render(
            found=found,
            flames=flames,
            height=max((flame.top for flame in flames), default=0) + ROW,
            row=ROW,
            categories=CATEGORY_NAMES,
            matrix=_matrix(found),
            ms=lambda seconds: ms(seconds, 2),
            per_cent=per_cent,
        )
    )


def _flames(found: Explanation) -> Iterator[Flame]:
    """Lay the spans of a trace out, each below the one that it is a part of."""
    if found.trace is None:
        return
    whole = max(span.end for span in found.trace.spans) or 1.0

    def laid(spans: Sequence[Span], depth: int) -> Iterator[Flame]:
        for span in spans:
            name, width = label(found, span), 100 * span.seconds / whole
            yield Flame(
                category=category_of(span.cell),
                left=100 * span.start / whole,
                width=width,
                top=depth * ROW,
                text=name if width >= _LABEL_FROM else "",
                tip=f"{name}: {ms(span.seconds, 2)} ms",
            )
            yield from laid(span.children, depth + 1)

    yield from laid(found.trace.spans, 0)


def _matrix(found: Explanation) -> dict[str, object]:
    """Lay the cells out as phases by operations; None where nothing was spent."""
    operations = in_order({operation for _, operation in found.cells}, OPERATIONS)
    phases = in_order({phase for phase, _ in found.cells}, PHASES)
    return {
        "operations": operations,
        "rows": [(p, [found.cells.get((p, o)) for o in operations]) for p in phases],
    }

"""One self-contained page: bars, numbers, and how they were measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from keylag.advice import may_help, sentence, title
from keylag.breakdown import Run
from keylag.phases import CATEGORY_NAMES, OPERATIONS, PHASES, in_order
from keylag.report.pages import templates
from keylag.report.rows import (
    CLIENT,
    Shown,
    by_call,
    count,
    digits_for,
    ms,
    per_cent,
    total,
    value,
)
from keylag.state import write_output

LETTERS: Final[Mapping[str, str]] = dict(zip(CATEGORY_NAMES, "SCRHTMO", strict=True))
"""A letter for each category, so that a bar can be read without its colours."""

OUTSIDE: Final = "outside"
_LABEL_FROM: Final = 2.5
_NAME_FROM: Final = 16.0


@dataclass(frozen=True)
class Segment:
    """One piece of a bar; `left` and `width` in per cent of the longest bar."""

    category: str
    left: float
    width: float
    label: str
    tip: str


@dataclass(frozen=True)
class Bar:
    """One run of a call."""

    run: str
    segments: Sequence[Segment]
    wall: str
    client: str


def write_html(runs: Sequence[Run], path: Path) -> None:
    """Write the page of one or more runs; the folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_output(path, render(runs))


def render(runs: Sequence[Run]) -> str:
    """Return the page."""
    environment = templates()
    helpers = (
        bars,
        count,
        matrix,
        may_help,
        ms,
        per_cent,
        sentence,
        title,
        total,
        value,
    )
    environment.globals.update({helper.__name__: helper for helper in helpers})
    return environment.get_template("report.html.j2").render(
        runs=runs,
        groups=list(by_call(runs)),
        categories=CATEGORY_NAMES,
        letters=LETTERS,
        client_columns=CLIENT,
        environment=facts(runs),
        digits=_digits,
    )


def bars(group: Sequence[Shown]) -> list[Bar]:
    """Lay the runs of a call out on one scale: the slowest client's mean."""
    longest = max((_length(one) for one in group), default=0.0)
    return [_bar(one, longest) for one in group]


def _length(one: Shown) -> float:
    call = one.call
    means = (value(call[name], "mean") for name in ("wall_seconds", "client_seconds"))
    return max(mean or 0.0 for mean in means)


def _digits(one: Shown) -> int:
    return digits_for(value(one.call["wall_seconds"], "mean") or 0.0)


def _bar(one: Shown, longest: float) -> Bar:
    parts = {name: part["mean"] for name, part in one.call["categories"].items()}
    parts[OUTSIDE] = max(0.0, _length(one) - sum(parts.values()))
    segments, left = [], 0.0
    for category, seconds in parts.items():
        width = 100 * seconds / longest if longest else 0.0
        segments.append(_segment(one, category, seconds, left, width))
        left += width
    return Bar(
        run=one.run["name"],
        segments=[segment for segment in segments if segment.width > 0],
        wall=ms(value(one.call["wall_seconds"], "mean"), _digits(one)),
        client=ms(value(one.call["client_seconds"], "mean"), 1),
    )


def _segment(
    one: Shown, category: str, seconds: float, left: float, width: float
) -> Segment:
    words = CATEGORY_NAMES.get(category, "outside Keystone's workers")
    label = LETTERS.get(category, "") if width >= _LABEL_FROM else ""
    if width >= _NAME_FROM:
        label = words if category in CATEGORY_NAMES else "outside"
    tip = f"{words}: {ms(seconds, _digits(one))} ms"
    return Segment(category, left, width, label, tip)


def matrix(one: Shown) -> dict[str, Any]:
    """Lay the cells out as phases by operations; empty where nothing was spent."""
    cells = {tuple(name.split(".", 1)): v for name, v in one.call["cells"].items()}
    operations = in_order({cell[1] for cell in cells}, OPERATIONS)
    phases = in_order({cell[0] for cell in cells}, PHASES)
    return {
        "operations": operations,
        "rows": [
            (phase, [cells.get((phase, operation)) for operation in operations])
            for phase in phases
        ],
    }


def facts(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    """Return the environment: each fact with its value in every run."""
    names = dict.fromkeys(name for run in runs for name in run["environment"])
    return [
        (
            name.replace("_", " "),
            [str(run["environment"].get(name, "")) for run in runs],
        )
        for name in names
    ]

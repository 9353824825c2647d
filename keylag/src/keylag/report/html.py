"""The HTML report: one self-contained page with bars, tables and the method."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from keylag.breakdown import Run
from keylag.call_facts import call_facts, call_name
from keylag.diagnosis import wording
from keylag.diagnosis.common import name_kind
from keylag.diagnosis.ranking import Diagnosis
from keylag.phases import CATEGORY_NAMES, OPERATIONS, PHASES, sort_known_first
from keylag.report.conclusion import conclusion, not_judged
from keylag.report.formatting import (
    CLIENT_STATISTICS,
    RunCall,
    decimals_of,
    format_count,
    format_ms,
    format_percent,
    group_by_call,
    statistic,
    sum_statistic,
)
from keylag.report.jinja import jinja_environment
from keylag.state import write_output

CATEGORY_LETTERS: Final[Mapping[str, str]] = dict(
    zip(CATEGORY_NAMES, "SCRHTMO", strict=True)
)
"""A letter for each category, so that bars are readable without colours."""

OUTSIDE: Final = "outside"
_MIN_LABEL_WIDTH: Final = 2.5
_MIN_NAME_WIDTH: Final = 16.0


@dataclass(frozen=True)
class Segment:
    """One category in a bar; `left` and `width` are per cent of the longest bar."""

    category: str
    left: float
    width: float
    label: str
    tip: str


@dataclass(frozen=True)
class Bar:
    """The bar of one call in one run, with its mean times in ms as text."""

    run: str
    segments: Sequence[Segment]
    wall: str
    client: str


def write_html(
    runs: Sequence[Run], diagnoses: Mapping[str, Diagnosis], path: Path
) -> None:
    """Write the page of one or more runs; creates the folder.  Raises OSError."""
    write_output(path, render_html(runs, diagnoses))


def render_html(runs: Sequence[Run], diagnoses: Mapping[str, Diagnosis]) -> str:
    """Return the HTML of the page; `diagnoses` has one for each run, by its name."""
    environment = jinja_environment()
    helpers = (
        conclusion,
        not_judged,
        name_kind,
        layout_bars,
        format_count,
        phase_operation_matrix,
        format_ms,
        format_percent,
        call_facts,
        call_name,
        sum_statistic,
        statistic,
    )
    environment.globals.update({helper.__name__: helper for helper in helpers})
    return environment.get_template("report.html.j2").render(
        runs=runs,
        diagnoses=diagnoses,
        wording=wording,
        groups=list(group_by_call(runs)),
        categories=CATEGORY_NAMES,
        letters=CATEGORY_LETTERS,
        client_columns=CLIENT_STATISTICS,
        environment=environment_rows(runs),
        digits=decimals_of,
    )


def layout_bars(group: Sequence[RunCall]) -> list[Bar]:
    """Return a bar for each run of a call; the slowest mean has the full width."""
    longest = max((_longest_mean(one) for one in group), default=0.0)
    return [_bar(one, longest) for one in group]


def _longest_mean(one: RunCall) -> float:
    call = one.call
    means = (
        statistic(call[name], "mean") for name in ("wall_seconds", "client_seconds")
    )
    return max(mean or 0.0 for mean in means)


def _bar(one: RunCall, longest: float) -> Bar:
    parts = {name: part["mean"] for name, part in one.call["categories"].items()}
    parts[OUTSIDE] = max(0.0, _longest_mean(one) - sum(parts.values()))
    segments, left = [], 0.0
    for category, seconds in parts.items():
        width = 100 * seconds / longest if longest else 0.0
        segments.append(_segment(one, category, seconds, left, width))
        left += width
    return Bar(
        run=one.run["name"],
        segments=[segment for segment in segments if segment.width > 0],
        wall=format_ms(statistic(one.call["wall_seconds"], "mean"), decimals_of(one)),
        client=format_ms(statistic(one.call["client_seconds"], "mean"), 1),
    )


def _segment(
    one: RunCall, category: str, seconds: float, left: float, width: float
) -> Segment:
    words = CATEGORY_NAMES.get(category, "outside Keystone's workers")
    label = CATEGORY_LETTERS.get(category, "") if width >= _MIN_LABEL_WIDTH else ""
    if width >= _MIN_NAME_WIDTH:
        label = words if category in CATEGORY_NAMES else "outside"
    tip = f"{words}: {format_ms(seconds, decimals_of(one))} ms"
    return Segment(category, left, width, label, tip)


def phase_operation_matrix(one: RunCall) -> dict[str, Any]:
    """Return the cells as a table of phases by operations; None for empty cells."""
    cells = {tuple(name.split(".", 1)): v for name, v in one.call["cells"].items()}
    operations = sort_known_first({cell[1] for cell in cells}, OPERATIONS)
    phases = sort_known_first({cell[0] for cell in cells}, PHASES)
    return {
        "operations": operations,
        "rows": [
            (phase, [cells.get((phase, operation)) for operation in operations])
            for phase in phases
        ],
    }


def environment_rows(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    """Return each fact of the environments with its value in every run."""
    names = dict.fromkeys(name for run in runs for name in run["environment"])
    return [
        (
            name.replace("_", " "),
            [str(run["environment"].get(name, "")) for run in runs],
        )
        for name in names
    ]

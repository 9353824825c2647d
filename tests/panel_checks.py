"""What is wrong with the panels of a dashboard, as text."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from keylag.phases import PHASES
from keylag_dashboards.model import Board, Panel
from keylag_dev.grafana_page import Column, ShownPanel

NO_DATA: Final = ("No data", "Data is missing", "Cannot visualize")
"""Texts for panels without data: Grafana's and the dashboards' own begin so."""
UNITS: Final[Mapping[str, str]] = {
    "s": r" (ns|µs|ms|s|mins?|hours?|days?|weeks?|years?)",
    "percentunit": "%",
    "reqps": r"( K)? req/s",
    "ops": r"( K)? ops/s",
    "eps": r"( K)? evt/s",
    "bytes": r" (B|KiB|MiB|GiB)",
    "Bps": r" (B|kB|MB|GB)/s",
    "short": r"( (K|Mil|Bil))?",
    "locale": r"(,\d{3})*",
    "string": "",
}
"""What Grafana writes behind a number, as a regular expression."""
NUMBER: Final = r"-?\d+(\.\d+)?"
EMPTY_CELLS: Final = {"", "-"}
READABLE_LETTERS: Final = 40
"""A cell with words shows at least these if it is cut."""
GENERIC_NAME: Final = re.compile(r"(Value.*|.*[{}].*|)")
"""Names of series that Grafana makes up, and labels in braces."""
TINY: Final = re.compile(r"0\.000\d+")
DEFAULT_AXIS: Final = [0, 20, 40, 60, 80, 100]
"""Grafana's axis if all values are equal."""
CODE_NAMES: Final = {phase for phase in PHASES if "_" in phase}


def _words(panel: Panel) -> set[str]:
    """Return the words that replace values, in the panel or in its columns."""
    mappings = [panel.states, *(one.states for one in panel.columns.values())]
    return {state.word for states in mappings for state in states.values()}


def _is_value(text: str, unit: str, panel: Panel) -> bool:
    """Return whether a text is a number with its unit, or a word for one."""
    return text in EMPTY_CELLS | _words(panel) or bool(
        re.fullmatch(NUMBER + UNITS[unit], text)
    )


def _values(column: Column) -> list[str]:
    return [cell.text for cell in column.cells]


def _column_unit(panel: Panel, heading: str) -> str:
    """Return the unit of a column of values; empty for a column of labels."""
    if heading not in panel.queries:
        return ""
    chosen = panel.columns.get(heading)
    return (chosen.unit if chosen else "") or panel.unit


def _wrong_units(shown: ShownPanel, panel: Panel) -> Iterator[str]:
    values = [value for legend in shown.legends for value in legend.values]
    ticks = shown.ticks if panel.kind != "heatmap" else []
    yield from (x for x in values + ticks if not _is_value(x, panel.unit, panel))
    for column in shown.columns:
        if unit := _column_unit(panel, column.heading):
            yield from (x for x in _values(column) if not _is_value(x, unit, panel))


def _labels_as_numbers(shown: ShownPanel, panel: Panel) -> Iterator[str]:
    """Statuses, ids and names are text: a number with a unit is none."""
    for column in shown.columns:
        if not _column_unit(panel, column.heading):
            found = (x for x in _values(column) if re.fullmatch(rf"{NUMBER} \S+", x))
            yield from (f"{column.heading}: {x}" for x in found)


def _generic_names(shown: ShownPanel, _: Panel) -> Iterator[str]:
    names = [legend.name for legend in shown.legends]
    names += [column.heading for column in shown.columns]
    yield from (repr(name) for name in names if GENERIC_NAME.fullmatch(name))


def _no_data_in_legend(shown: ShownPanel, _: Panel) -> Iterator[str]:
    for legend in shown.legends:
        texts = [legend.name, *legend.values]
        yield from (x for x in texts if any(map(x.count, NO_DATA)))


def _cut_headings(shown: ShownPanel, _: Panel) -> Iterator[str]:
    yield from (column.heading for column in shown.columns if column.clipped)


def _cut_cells(shown: ShownPanel, _: Panel) -> Iterator[str]:
    """Cells that are cut are readable, and different texts look different."""
    for column in shown.columns:
        texts = {cell.text: cell.visible for cell in column.cells}
        cut = {x: seen for x, seen in texts.items() if x != seen}
        looks = Counter(texts.values())
        yield from (
            f"{column.heading}: {seen!r} of {text!r}"
            for text, seen in cut.items()
            if (" " in text and len(seen) < READABLE_LETTERS) or looks[seen] > 1
        )


def _tiny_values(shown: ShownPanel, _: Panel) -> Iterator[str]:
    values = [value for legend in shown.legends for value in legend.values]
    values += [value for column in shown.columns for value in _values(column)]
    yield from (value for value in values + shown.ticks if TINY.match(value))


def _equal_ticks(shown: ShownPanel, panel: Panel) -> Iterator[str]:
    if panel.kind != "heatmap":
        yield from (tick for tick, n in Counter(shown.ticks).items() if n > 1)


def _axis_for_nothing(shown: ShownPanel, panel: Panel) -> Iterator[str]:
    numbers = [float(x[0]) for t in shown.ticks if (x := re.match(NUMBER, t))]
    meant = panel.unit in {"s", "percentunit"} or panel.limits
    if numbers == DEFAULT_AXIS and not meant:
        yield shown.ticks[-1]


def _shares_above_one(shown: ShownPanel, panel: Panel) -> Iterator[str]:
    if panel.unit == "percentunit":
        yield from (x for x in shown.ticks if float(x.rstrip("%")) > 100)


def _equal_colors(shown: ShownPanel, panel: Panel) -> Iterator[str]:
    drawn = [one for one in shown.legends if one.name not in panel.limits]
    names: dict[str, list[str]] = {}
    for legend in drawn:
        names.setdefault(legend.color, []).append(legend.name)
    yield from (" and ".join(same) for same in names.values() if len(same) > 1)


def _code_names(shown: ShownPanel, _: Panel) -> Iterator[str]:
    names = {legend.name for legend in shown.legends}
    names |= {value for column in shown.columns for value in _values(column)}
    yield from sorted(names & CODE_NAMES)


CHECKS: Final[Mapping[str, Callable[[ShownPanel, Panel], Iterable[str]]]] = {
    "an error": lambda shown, _: [shown.text] if shown.failed else [],
    "columns are out of sight": lambda shown, _: (
        [shown.columns[-1].heading] if shown.hidden_columns else []
    ),
    "headings are cut": _cut_headings,
    "cells are cut": _cut_cells,
    "not in the panel's unit": _wrong_units,
    "labels are shown as numbers": _labels_as_numbers,
    "names without a meaning": _generic_names,
    "the text for no data is in the legend": _no_data_in_legend,
    "too many zeros": _tiny_values,
    "equal ticks": _equal_ticks,
    "an axis for nothing": _axis_for_nothing,
    "shares above 100 %": _shares_above_one,
    "one colour for two series": _equal_colors,
    "names of code": _code_names,
}
"""Each returns the texts that it finds wrong."""


def is_empty(shown: ShownPanel) -> bool:
    """Return whether a panel has no data."""
    rows = [cell for column in shown.columns for cell in column.cells]
    return (
        any(map(shown.text.count, NO_DATA))
        or not (shown.text or shown.ticks)
        or (bool(shown.columns) and not rows)
    )


def find_faults(shown: Sequence[ShownPanel], board: Board) -> list[str]:
    """Return what is wrong with the panels of a dashboard."""
    by_title = {panel.title: panel for row in board.rows for panel in row.panels}
    found = [
        f"{one.title}: {name}: {text}"
        for one in shown
        for name, check in CHECKS.items()
        for text in check(one, by_title[one.title])
    ]
    overlapping = [
        f"{one.title} and {other.title} overlap"
        for one, other in combinations(shown, 2)
        if one.box.overlaps(other.box)
    ]
    return found + overlapping


def empty_titles(shown: Sequence[ShownPanel], board: Board) -> set[str]:
    """Return the titles of empty panels that should have data on a healthy stack."""
    may_be_empty = {
        panel.title
        for row in board.rows
        for panel in row.panels
        if panel.queries and all(map(panel.may_be_empty, panel.queries))
    }
    return {one.title for one in shown if is_empty(one)} - may_be_empty

"""The `Server-Timing` response header of an instrumented Keystone.

    total;dur=12.3, sql;dur=1.2, ..., sql_statements;desc=6, sql.validate;dur=0.7

The durations of `total`, of categories and of cells (phase.operation) are in
milliseconds in the header and in seconds here.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from keylag.phases import CATEGORIES, OPERATIONS, PHASES, Cell

COUNTS: Final = ("sql_statements", "cache_calls")

ROUNDING_SECONDS: Final = 50e-9
"""Half of the last of the header's four decimals of a millisecond."""

_TOTALS: Final = ("total", *CATEGORIES)
_MILLISECOND: Final = 1e-3
_NAME: Final = re.compile(r"[\w.!#$%&'*+^`|~-]+")


class BadServerTimingError(ValueError):
    """The header does not come from an instrumented Keystone, or is damaged."""


@dataclass(frozen=True, slots=True)
class ServerTiming:
    """The breakdown of one request as Keystone measured it, in seconds."""

    total_seconds: float
    categories: Mapping[str, float]
    """By the header's names; `keylag.phases` derives the same values from the cells."""
    cells: Mapping[Cell, float]
    counts: Mapping[str, int]

    def adds_up(self) -> bool:
        """Return whether the cells add up to the total within the header's rounding."""
        rounding = ROUNDING_SECONDS * (len(self.cells) + 1)
        difference = math.fsum(self.cells.values()) - self.total_seconds
        return abs(difference) <= rounding + 1e-12


def parse_server_timing(header: str) -> ServerTiming:
    """Parse the value of a header.

    Entries of other servers, such as proxies, are ignored.  Raises
    BadServerTimingError for a missing total or an invalid number.
    """
    durations: dict[str, float] = {}
    counts: dict[str, int] = {}
    for name, parameters in _parse_entries(header):
        if "dur" in parameters and (name in _TOTALS or _is_cell(name)):
            durations[name] = _parse_number(name, parameters["dur"]) * _MILLISECOND
        elif "desc" in parameters and name in COUNTS:
            counts[name] = int(_parse_number(name, parameters["desc"]))
    if "total" not in durations:
        message = "the Server-Timing header has no total"
        raise BadServerTimingError(message)
    return _build(durations, counts)


def is_keylags(header: str) -> bool:
    """Return whether a header has cells, and not only entries of other servers."""
    return any(_is_cell(name) for name, _ in _parse_entries(header))


def _is_cell(name: str) -> bool:
    # A newer instrumentation may have a phase or an operation unknown here.
    phase, _, operation = name.partition(".")
    return bool(operation) and (phase in PHASES or operation in OPERATIONS)


def _build(durations: dict[str, float], counts: dict[str, int]) -> ServerTiming:
    split = {name: tuple(name.split(".", 1)) for name in durations if "." in name}
    return ServerTiming(
        total_seconds=durations["total"],
        categories={name: durations[name] for name in CATEGORIES if name in durations},
        cells={(cell[0], cell[1]): durations[name] for name, cell in split.items()},
        counts=counts,
    )


def _parse_entries(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    for entry in header.split(","):
        name, *rest = (part.strip() for part in entry.split(";"))
        if _NAME.fullmatch(name):
            pairs = (part.partition("=") for part in rest)
            yield name, {key.strip(): value.strip(' "') for key, _, value in pairs}


def _parse_number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        message = f"{name} in the Server-Timing header is {text!r}, not a number"
        raise BadServerTimingError(message)
    return value

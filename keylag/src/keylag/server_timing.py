"""The `Server-Timing` response header of an instrumented Keystone.

    total;dur=12.3, sql;dur=1.2, ..., sql_statements;desc=6, sql.validate;dur=0.7

`total` and the durations of the categories and of the (phase.operation)
cells are milliseconds in the header and seconds here.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from keylag.phases import CATEGORIES, OPERATIONS, PHASES, Cell

COUNTS: Final = ("sql_statements", "cache_calls")

ROUNDING_SECONDS: Final = 50e-9
"""The header has four decimals of a millisecond: half of the last one."""

_WHOLES: Final = ("total", *CATEGORIES)
_MILLISECOND: Final = 1e-3
_NAME: Final = re.compile(r"[\w.!#$%&'*+^`|~-]+")


class BadServerTimingError(ValueError):
    """The header is not one of an instrumented Keystone; the text says why."""


@dataclass(frozen=True, slots=True)
class ServerTiming:
    """One request as Keystone measured it; times in seconds."""

    total_seconds: float
    categories: Mapping[str, float]
    """As the header names them; `keylag.phases` derives the same from the cells."""
    cells: Mapping[Cell, float]
    counts: Mapping[str, int]

    def adds_up(self) -> bool:
        """Tell whether the cells' sum is the total, within the header's rounding."""
        rounding = ROUNDING_SECONDS * (len(self.cells) + 1)
        difference = math.fsum(self.cells.values()) - self.total_seconds
        return abs(difference) <= rounding + 1e-12


def parse(header: str) -> ServerTiming:
    """Read a header's value.

    Entries of other parties (a proxy's, say) are passed over.  Raises
    BadServerTimingError without a total or with a number that is none.
    """
    durations: dict[str, float] = {}
    counts: dict[str, int] = {}
    for name, parameters in _entries(header):
        if "dur" in parameters and (name in _WHOLES or _is_cell(name)):
            durations[name] = _number(name, parameters["dur"]) * _MILLISECOND
        elif "desc" in parameters and name in COUNTS:
            counts[name] = int(_number(name, parameters["desc"]))
    if "total" not in durations:
        message = "no total in the Server-Timing header"
        raise BadServerTimingError(message)
    return _built(durations, counts)


def _is_cell(name: str) -> bool:
    """Tell a cell from another party's entry; one of its two words may be new."""
    phase, _, operation = name.partition(".")
    return bool(operation) and (phase in PHASES or operation in OPERATIONS)


def _built(durations: dict[str, float], counts: dict[str, int]) -> ServerTiming:
    split = {name: tuple(name.split(".", 1)) for name in durations if "." in name}
    return ServerTiming(
        total_seconds=durations["total"],
        categories={name: durations[name] for name in CATEGORIES if name in durations},
        cells={(cell[0], cell[1]): durations[name] for name, cell in split.items()},
        counts=counts,
    )


def _entries(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Give each entry's name and its parameters."""
    for entry in header.split(","):
        name, *rest = (part.strip() for part in entry.split(";"))
        if _NAME.fullmatch(name):
            pairs = (part.partition("=") for part in rest)
            yield name, {key.strip(): value.strip(' "') for key, _, value in pairs}


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        message = f"{name} is {text!r} in the Server-Timing header, not a number"
        raise BadServerTimingError(message)
    return value

"""Writes the tables in docs/experiments/README.md, from the results there.

    python -m keylag_dev.experiments_page

Between two comments the page is made by this module; all else is written by hand.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from keylag.experiment.analysis import RequestCounts
from keylag.experiment.capacity.report import format_range
from keylag.experiment.capacity.result import RateRange
from keylag.experiment.interval import Interval
from keylag.experiment.messages import MEASURE_NAMES, format_percent
from keylag.experiment.plan import SECONDS_PER_MINUTE
from keylag.experiment.verdicts import FAILS
from keylag.paths import CHECKOUT
from keylag_dev.generated_tables import replace_tables

RESULTS: Final = CHECKOUT / "docs" / "experiments"
PAGE: Final = RESULTS / "README.md"
CAPACITIES: Final = "capacity"
"""The folder of the measured capacities, in that of the results."""
NO_ROUNDS: Final = "cannot tell: no round is complete"
HEADINGS: Final = (
    (
        "| plan | arm, compared with | decides by, and what matters "
        "| difference | verdict | run |"
    ),
    "|---|---|---|---:|---|---|",
)
CAPACITY_HEADINGS: Final = (
    "| plan | arm | requests per second held | ratio to the base | verdict | run |",
    "|---|---|---:|---:|---|---|",
)


def render(text: str, results: Path = RESULTS) -> str:
    """Return the page with its tables replaced."""
    tables = {"verdicts": _verdicts(results), "capacities": _capacities(results)}
    return replace_tables(text, tables)


def _verdicts(results: Path) -> Iterator[str]:
    yield from HEADINGS
    for path in sorted(results.glob("*/result.json")):
        plan = path.parent.name
        yield from rows(f"[`{plan}`]({plan}/report.md)", json.loads(path.read_text()))


def _capacities(results: Path) -> Iterator[str]:
    yield from CAPACITY_HEADINGS
    for path in sorted(results.glob(f"{CAPACITIES}/*/result.json")):
        plan = path.parent.name
        name = f"[`{plan}`]({CAPACITIES}/{plan}/report.md)"
        yield from _capacity_rows(name, json.loads(path.read_text()))


def _capacity_rows(name: str, result: Mapping[str, Any]) -> Iterator[str]:
    minutes = result["seconds"] / SECONDS_PER_MINUTE
    run = f"{result['settings']['repeats']} repeats, {minutes:.0f} min"
    for one in result["arms"]:
        ranges = (format_range(_range(one[key])) for key in ("held", "ratio"))
        yield f"| {' | '.join([name, one['arm'], *ranges, one['verdict'], run])} |"


def _range(found: Mapping[str, float] | None) -> RateRange | None:
    return RateRange(**found) if found else None


def rows(name: str, result: Mapping[str, Any]) -> Iterator[str]:
    """Yield a row for each arm of a run, on what its plan decides by."""
    decision = result["decision"]
    measure, matters = MEASURE_NAMES[decision["measure"]], decision["smallest"]
    decides_by = f"{decision['method']}, {measure}, {100 * matters:g} %"
    minutes = result["seconds"] / SECONDS_PER_MINUTE
    for one in result["comparisons"]:
        if one["method"] != decision["method"]:
            continue
        found = one["measures"].get(decision["measure"])
        arms = f"{one['arm']}, {result['base']}"
        judged = _judged(found) if found else ["-", _without_figures(result, one)]
        run = f"{_rounds(result, one)} rounds, {minutes:.1f} min"
        cells = [name, arms, decides_by, *judged, run]
        yield f"| {' | '.join(cells)} |"


def _rounds(result: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    # An arm may leave with its verdict; one that always failed has none.
    of_arm, of_run = one["rounds"], result["rounds"]
    return f"{of_arm} of {of_run}" if 0 < of_arm < of_run else f"{of_run}"


def _without_figures(result: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    counts = result["requests"].get(one["arm"])
    has_answered = counts and RequestCounts(**counts).successful
    return NO_ROUNDS if has_answered else FAILS


def _judged(found: Mapping[str, Any]) -> list[str]:
    # JSON has null for an infinite end.
    relative = found["relative"]
    if None in relative.values():
        return ["-", found["verdict"]]
    return [format_percent(Interval(**relative)), found["verdict"]]


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

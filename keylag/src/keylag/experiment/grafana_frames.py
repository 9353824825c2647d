"""The data of a dashboard's panels, as Grafana's data frames.

A panel without its data source shows such frames as if a query had returned them.  The
form is that of Grafana's snapshots: `schema` with names, types and labels, and `data`
with a list of values for each field.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

FINE_STEP_SECONDS: Final = 30
"""Interval of the recording rules."""
COARSE_STEP_SECONDS: Final = 300
"""Interval of the means of recorded series."""
COARSE_RANGE_SECONDS: Final = 2 * 86400
"""Panels over a longer range read the means."""
MILLISECONDS: Final = 1000

Frame = dict[str, Any]
Ask = Callable[[str, dict[str, str]], Any]
"""Sends parameters to `query` or `query_range` of Prometheus and returns its data."""

_VARIABLE: Final = re.compile(r"\$(?:\{(\w+(?::\w+)?)\}|(\w+))")
_LEGEND_LABEL: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True)
class Period:
    """The time that a dashboard shows; seconds since 1970."""

    start: float
    end: float

    @property
    def seconds(self) -> int:
        """Its length."""
        return math.ceil(self.end - self.start)

    @property
    def is_long(self) -> bool:
        """Whether panels read the means of recorded series."""
        return self.seconds > COARSE_RANGE_SECONDS

    @property
    def step_seconds(self) -> int:
        """The distance of two points of a line."""
        return COARSE_STEP_SECONDS if self.is_long else FINE_STEP_SECONDS


def period_values(period: Period) -> dict[str, str]:
    """Return the values of Grafana's own variables, and of `recorded`."""
    return {
        "__interval": f"{period.step_seconds}s",
        "__range": f"{period.seconds}s",
        "__range_s": str(period.seconds),
        "recorded": "rate_avg5m" if period.is_long else "rate",
        "recorded:text": str(period.step_seconds),
    }


def panel_frames(
    panel: Mapping[str, Any], values: Mapping[str, str], period: Period, ask: Ask
) -> list[Frame]:
    """Ask Prometheus what a panel shows; `values` has those of the variables."""
    frames: list[Frame] = []
    for target in panel["targets"]:
        promql = _fill(target["expr"], values)
        if target["instant"]:
            found = ask("query", {"query": promql, "time": str(period.end)})
            frames.append(_table(target["refId"], found["result"]))
        else:
            parameters = {
                "query": promql,
                "start": str(period.start),
                "end": str(period.end),
                "step": str(period.step_seconds),
            }
            found = ask("query_range", parameters)
            frames += [_line(target, one, period) for one in found["result"]]
    return frames


def _fill(promql: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda name: values.get(name[1] or name[2], name[0]), promql)


def _table(reference: str, series: Sequence[Mapping[str, Any]]) -> Frame:
    # As the data source does for `format: table`: a column for each label.
    labels = dict.fromkeys(label for one in series for label in one["metric"])
    columns: list[list[Any]] = [
        [_milliseconds(one["value"][0]) for one in series],
        *([one["metric"].get(label, "") for one in series] for label in labels),
        [_number(one["value"][1]) for one in series],
    ]
    fields = [
        _field("Time", "time"),
        *(_field(label, "string") for label in labels),
        _field(f"Value #{reference}", "number"),
    ]
    return _frame(reference, fields, columns)


def _line(
    target: Mapping[str, Any], series: Mapping[str, Any], period: Period
) -> Frame:
    labels = series["metric"]
    legend = _LEGEND_LABEL.sub(
        lambda name: labels.get(name[1], ""), target["legendFormat"]
    )
    fields = [
        # With the interval, the panel draws no line over a gap.
        _field("Time", "time")
        | {"config": {"interval": period.step_seconds * MILLISECONDS}},
        _field("Value", "number")
        | {"labels": labels, "config": {"displayNameFromDS": legend}},
    ]
    columns: list[list[Any]] = [
        [_milliseconds(at) for at, _ in series["values"]],
        [_number(value) for _, value in series["values"]],
    ]
    return _frame(target["refId"], fields, columns)


def _frame(reference: str, fields: list[Any], columns: list[list[Any]]) -> Frame:
    schema = {"refId": reference, "fields": fields}
    return {"schema": schema, "data": {"values": columns}}


def _field(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _milliseconds(seconds: float) -> int:
    return round(seconds * MILLISECONDS)


def _number(text: str) -> float | None:
    # JSON has no NaN and no infinity.
    value = float(text)
    return value if math.isfinite(value) else None

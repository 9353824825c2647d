"""Runs all queries of the dashboards: `... check http://127.0.0.1:9090`.

Prints the location, the number of series and the text of each query. So you know which
panels will have data before you open Grafana.
"""

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from keylag_dashboards.arguments import absolute_url, make_parser
from keylag_dashboards.config import FINE, RECORDING_SECONDS
from keylag_otel.command_errors import run_command

GENERATED: Final = Path(__file__).parents[2] / "generated" / "provisioned"
WINDOW: Final = "1h"
"""Replaces Grafana's interval variables."""
TIMEOUT_SECONDS: Final = 30

_VARIABLE: Final = re.compile(r"\$(?:\{(\w+(?::\w+)?)\}|(\w+))")
_HIDES_SERIES: Final = re.compile(r" offset \w+| > 0$| @ end\(\) < 0$")
"""Parts of a query that hide existing series: an offset, and a final comparison."""


@dataclass(frozen=True)
class DashboardQuery:
    """One query of a dashboard, as Grafana would send it."""

    board: str
    where: str
    """Title of the panel, or `variable NAME`, or `annotation NAME`."""
    legend: str
    expression: str
    """The query in the dashboard, with Grafana's variables."""
    query: str
    repeated: str = ""
    """Value that the panel's row is repeated for, if any."""


def dashboard_queries(board: Mapping[str, Any]) -> Iterator[DashboardQuery]:
    """Yield all queries of a dashboard: variables, annotations, panels."""
    title = board["title"]
    variables = [v for v in board["templating"]["list"] if v["type"] == "query"]
    values = dict.fromkeys(("__rate_interval", "__interval", "__range"), WINDOW)
    values |= {"recorded": FINE, "recorded:text": str(RECORDING_SECONDS)}
    values |= {"__range_s": "3600"}
    values |= {v["name"]: v["allValue"] for v in variables if "allValue" in v}
    for one in variables:
        query = _fill_variables(one["query"], values)
        asked = query.removeprefix("query_result(").removesuffix(")")
        yield DashboardQuery(
            title, f"variable {one['name']}", _label(one), one["query"], asked
        )
    annotations = [one for one in board["annotations"]["list"] if "expr" in one]
    for one in annotations:
        query = _fill_variables(one["expr"], values)
        yield DashboardQuery(title, f"annotation {one['name']}", "", one["expr"], query)
    selected = {v["name"]: v["current"]["value"] for v in variables if "current" in v}
    for panel, repeat in _panels(board["panels"]):
        for value in selected[repeat] if repeat else ("",):
            panel_values = values | {repeat: value}
            for target in panel["targets"]:
                texts = (
                    target["expr"],
                    _fill_variables(target["expr"], panel_values),
                    value,
                )
                yield DashboardQuery(
                    title, panel["title"], target["legendFormat"], *texts
                )


def _label(variable: Mapping[str, Any]) -> str:
    """Return the label whose values a variable has."""
    return str(variable["regex"]).strip("/").partition("=")[0]


def count_series(prometheus: str, query: str) -> int:
    """Return how many series a query returns now.

    A query of the past, or one that only shows values above zero, counts the series
    before the offset or comparison. Raises ValueError for an invalid query, OSError if
    Prometheus does not answer.
    """
    _query(prometheus, query)
    series = _query(prometheus, _HIDES_SERIES.sub("", query))
    return sum(not math.isnan(float(one["value"][1])) for one in series)


def _panels(panels: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each panel with the variable that its row is repeated for."""
    repeat = ""
    for panel in panels:
        if panel["type"] == "row":
            repeat = panel.get("repeat", "")
            yield from ((one, repeat) for one in panel["panels"])
        elif "targets" in panel:
            yield panel, repeat


def _fill_variables(query: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(
        lambda match: values.get(match[1] or match[2], match[0]), query
    )


def _query(prometheus: str, query: str) -> list[dict[str, Any]]:
    address = f"{prometheus}/api/v1/query?{urlencode({'query': query})}"
    try:
        with urlopen(address, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - the URL is absolute
            series: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    except HTTPError as error:
        message = f"{query}: {error.read().decode()}"
        raise ValueError(message) from error
    except URLError as error:
        reason = getattr(error.reason, "strerror", None) or error.reason
        message = f"{prometheus} does not answer: {reason}"
        raise OSError(message) from error
    except (HTTPException, JSONDecodeError, KeyError, TypeError) as error:
        message = f"{prometheus} is not a Prometheus server"
        raise OSError(message) from error
    return series


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one Prometheus; return the exit code."""
    parser = make_parser(
        "keylag_dashboards.check",
        "Run all queries of the dashboards, and print the location and the number of "
        "series of each.",
    )
    parser.add_argument(
        "prometheus",
        type=absolute_url,
        metavar="URL",
        help="address of Prometheus, such as http://127.0.0.1:9090",
    )
    options = parser.parse_args(arguments)
    return run_command(lambda: _check(options.prometheus.rstrip("/")))


def _check(prometheus: str) -> int:
    for path in sorted(GENERATED.glob("*.json")):
        for one in dashboard_queries(json.loads(path.read_text(encoding="utf-8"))):
            count = count_series(prometheus, one.query)
            words = (one.board, one.where, one.legend, one.repeated)
            where = " | ".join(filter(None, words))
            print(f"{count:6}  {where}\n        {one.query}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())

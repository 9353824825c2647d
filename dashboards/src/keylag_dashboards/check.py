"""Ask a Prometheus all that the dashboards would: `... check http://127.0.0.1:9090`.

Prints where every query is shown, the number of its series, and the query, so that
one knows before Grafana is opened which panels will have something to show.
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

from keylag_dashboards.arguments import absolute, parser
from keylag_otel.command_errors import run_command

GENERATED: Final = Path(__file__).parents[2] / "generated" / "provisioned"
WINDOW: Final = "1h"
"""What stands for Grafana's own intervals."""
TIMEOUT_SECONDS: Final = 30

_VARIABLE: Final = re.compile(r"\$(\w+)")
_LABEL_VALUES: Final = re.compile(r"label_values\((.+), (\w+)\)")
_LATER: Final = re.compile(r" offset \w+| > 0$")
"""What hides data that are there: a look at the past, and a comparison at the end."""


@dataclass(frozen=True)
class Question:
    """One query of a dashboard, as Grafana would ask it."""

    board: str
    where: str
    """The panel's title, or `variable` or `annotation` with its name."""
    legend: str
    expression: str
    """The query as the dashboard has it, with its variables."""
    query: str
    repeated: str = ""
    """The value that the panel's row is repeated for, if it is."""


def questions(board: Mapping[str, Any]) -> Iterator[Question]:
    """Yield all that a dashboard asks: variables, annotations, panels."""
    title = board["title"]
    variables = [v for v in board["templating"]["list"] if v["type"] == "query"]
    values = {"__rate_interval": WINDOW, "__range": WINDOW}
    values |= {v["name"]: v["allValue"] for v in variables}
    for one in variables:
        found = _LABEL_VALUES.fullmatch(one["query"])
        metric, label = found.groups() if found else ("", "")
        named = f"group by ({label}) ({_filled(metric, values)})"
        query = f"{named} unless on ({label}) vector(0)"
        yield Question(title, f"variable {one['name']}", label, one["query"], query)
    marks = [one for one in board["annotations"]["list"] if "expr" in one]
    for one in marks:
        query = _filled(one["expr"], values)
        yield Question(title, f"annotation {one['name']}", "", one["expr"], query)
    chosen = {v["name"]: v["current"]["value"] for v in variables}
    for panel, repeat in _panels(board["panels"]):
        for value in chosen[repeat] if repeat else ("",):
            own = values | {repeat: value}
            for target in panel["targets"]:
                asked = (target["expr"], _filled(target["expr"], own), value)
                yield Question(title, panel["title"], target["legendFormat"], *asked)


def samples(prometheus: str, query: str) -> int:
    """Return how many series a query has now; ValueError if it cannot be parsed.

    A query of the past, or one that only shows what is above zero, counts the
    series that it is about.
    """
    _ask(prometheus, query)
    found = _ask(prometheus, _LATER.sub("", query))
    return sum(not math.isnan(float(series["value"][1])) for series in found)


def _panels(panels: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each panel with the variable that its row is repeated for."""
    repeat = ""
    for panel in panels:
        if panel["type"] == "row":
            repeat = panel.get("repeat", "")
        else:
            yield panel, repeat


def _filled(query: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), query)


def _ask(prometheus: str, query: str) -> list[dict[str, Any]]:
    address = f"{prometheus}/api/v1/query?{urlencode({'query': query})}"
    try:
        with urlopen(address, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - own
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    except HTTPError as error:
        message = f"{query}: {error.read().decode()}"
        raise ValueError(message) from error
    except URLError as error:
        reason = getattr(error.reason, "strerror", None) or error.reason
        message = f"{prometheus} does not answer: {reason}"
        raise OSError(message) from error
    except (HTTPException, JSONDecodeError, KeyError, TypeError) as error:
        message = f"{prometheus} does not answer as a Prometheus does"
        raise OSError(message) from error
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one; return the exit code."""
    made = parser(
        "keylag_dashboards.check",
        "Ask a Prometheus all that the dashboards would, and print for each query "
        "where it is shown and how many series it has now.",
    )
    made.add_argument(
        "prometheus",
        type=absolute,
        metavar="URL",
        help="the Prometheus, such as http://127.0.0.1:9090",
    )
    chosen = made.parse_args(arguments)
    return run_command(lambda: _check(chosen.prometheus.rstrip("/")))


def _check(prometheus: str) -> int:
    for path in sorted(GENERATED.glob("*.json")):
        for one in questions(json.loads(path.read_text(encoding="utf-8"))):
            count = samples(prometheus, one.query)
            words = (one.board, one.where, one.legend, one.repeated)
            where = " | ".join(filter(None, words))
            print(f"{count:6}  {where}\n        {one.query}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())

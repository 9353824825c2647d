"""The queries of a dashboard, as Grafana sends them for a wide screen."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from keylag_cloud.exposition import series_text
from keylag_cloud.prometheus import Prometheus
from keylag_dashboards.check import GENERATED

WIDTH_PIXELS: Final = 1600
"""Points that a panel as wide as the screen asks for."""
SCRAPE_SECONDS: Final = 15
"""`timeInterval` of the data source."""
STEPS: Final = (
    *(1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200),
    *(10800, 21600, 43200, 86400),
)
"""Intervals in seconds that Grafana rounds to."""
RANGES: Final[Mapping[str, int]] = {"24h": 86400, "7d": 7 * 86400}

_VARIABLE: Final = re.compile(r"\$(?:\{(\w+(?::text)?)(?::\w+)?\}|(\w+))")
_QUERY_RESULT: Final = re.compile(r"query_result\((.+)\)")
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION: Final = re.compile(r"(\d+)(ms|[smhdw])")


@dataclass(frozen=True)
class Query:
    """One request to Prometheus."""

    path: str
    parameters: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The query, without its times."""
        return str(self.parameters["query"])


@dataclass(frozen=True)
class OpenedPanel:
    """A panel, or a variable, with its requests."""

    board: str
    title: str
    queries: tuple[Query, ...]


def boards() -> list[Path]:
    """Return the files of all generated dashboards."""
    return sorted(GENERATED.glob("*.json"))


def step_seconds(seconds: int, points: int = WIDTH_PIXELS) -> int:
    """Return the step of a range of so many values, as Grafana rounds it."""
    exact = seconds / points
    return max(min(STEPS, key=lambda one: abs(one - exact)), SCRAPE_SECONDS)


def duration_seconds(text: str) -> float:
    """Return the seconds of `1m` or `1h30m`."""
    found = _DURATION.findall(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in found)


@dataclass(frozen=True)
class Opening:
    """One dashboard, opened over a range that ends at a time."""

    board: Mapping[str, Any]
    server: Prometheus
    seconds: int
    end: int

    @classmethod
    def of(cls, path: Path, server: Prometheus, seconds: int, end: int) -> "Opening":
        """Open a generated dashboard."""
        board = json.loads(path.read_text(encoding="utf-8"))
        return cls(board, server, seconds, end)

    def panels(self) -> Iterator[OpenedPanel]:
        """Yield the variables, annotations and panels, in Grafana's order."""
        title = self.board["title"]
        values: dict[str, str] = {}
        for one in self.board["templating"]["list"]:
            if one["type"] == "query":
                query = self._values_query(one["query"], values)
                yield OpenedPanel(title, f"variable {one['name']}", (query,))
            if one["type"] == "query" and "current" not in one:
                (found,) = self._options(one, values)
                values[f"{one['name']}:text"] = found.get("text", found["value"])
                values[one["name"]] = found["value"]
            else:
                values[one["name"]] = self._chosen(one, values)
        for one in self.board["annotations"]["list"]:
            if "expr" in one:
                query = self._range(one["expr"], values, step_seconds(self.seconds))
                yield OpenedPanel(title, f"annotation {one['name']}", (query,))
        for panel, repeated in self._shown(self.board["panels"], values):
            targets = [t for t in panel.get("targets", ()) if "expr" in t]
            queries = [
                query
                for target in targets
                for query in self._target(panel, target, {**values, **repeated})
            ]
            if queries:
                name = " ".join((panel["title"], *repeated.values()))
                yield OpenedPanel(title, name, tuple(queries))

    def _shown(
        self, panels: list[dict[str, Any]], values: Mapping[str, str]
    ) -> Iterator[tuple[dict[str, Any], Mapping[str, str]]]:
        """Yield each panel, those of collapsed rows too, for each repeated value."""
        repeat = ""
        for panel in panels:
            if panel["type"] == "row":
                repeat = panel.get("repeat") or ""
                for below in panel.get("panels", ()):
                    yield from self._repeated(below, repeat, values)
            else:
                yield from self._repeated(panel, repeat, values)

    def _repeated(
        self, panel: dict[str, Any], repeat: str, values: Mapping[str, str]
    ) -> Iterator[tuple[dict[str, Any], Mapping[str, str]]]:
        repeat = panel.get("repeat") or repeat
        if not repeat:
            yield panel, {}
            return
        for value in self._selected(repeat, values):
            yield panel, {repeat: value}

    def _selected(self, name: str, values: Mapping[str, str]) -> list[str]:
        """Return the selected values of a variable; of `All`, those that exist."""
        variable = next(
            v for v in self.board["templating"]["list"] if v["name"] == name
        )
        current = variable.get("current", {}).get("value", [])
        chosen = current if isinstance(current, list) else [current]
        if chosen in (["$__all"], []):
            return [one["value"] for one in self._options(variable, values)]
        return chosen

    def _options(
        self, variable: Mapping[str, Any], values: Mapping[str, str]
    ) -> list[Mapping[str, str]]:
        """Return the value of each option of a variable, and its text if it has one."""
        query = self._values_query(variable["query"], values)
        pattern = re.compile(variable["regex"].strip("/").replace("(?<", "(?P<"))
        results = self.server.get(query.path, query.parameters)["result"]
        texts = (series_text("", tuple(one["metric"].items())) for one in results)
        found = filter(None, map(pattern.search, texts))
        return [one.groupdict() or {"value": one[1]} for one in found]

    def _chosen(self, variable: Mapping[str, Any], values: Mapping[str, str]) -> str:
        """Return what replaces a variable in a query."""
        if variable["type"] == "datasource" or "current" not in variable:
            return ""
        current = variable.get("current", {}).get("value", "")
        chosen = current if isinstance(current, list) else [current]
        if chosen in (["$__all"], [""], []) and variable["type"] == "query":
            if variable.get("allValue"):
                return str(variable["allValue"])
            chosen = self._selected(variable["name"], values)[
                : None if variable.get("includeAll") else 1
            ]
        escaped = [re.escape(one).replace("\\", "\\\\") for one in chosen]
        plain = len(chosen) == 1 and not variable.get("multi")
        return chosen[0] if plain else "|".join(escaped).join(("(", ")"))

    def _target(
        self,
        panel: Mapping[str, Any],
        target: Mapping[str, Any],
        values: Mapping[str, str],
    ) -> Iterator[Query]:
        least = target.get("interval") or panel.get("interval") or "0s"
        least = self._fill(least, values, SCRAPE_SECONDS)
        floor = duration_seconds(least.removeprefix(">"))
        points = panel.get("maxDataPoints") or WIDTH_PIXELS
        step = max(step_seconds(self.seconds, points), int(floor))
        if target.get("instant"):
            query = self._fill(target["expr"], values, step)
            yield Query("query", {"query": query, "time": self.end})
        if target.get("range") or not target.get("instant"):
            yield self._range(target["expr"], values, step)

    def _range(self, expression: str, values: Mapping[str, str], step: int) -> Query:
        times = {
            "start": (self.end - self.seconds) // step * step,
            "end": self.end // step * step,
            "step": step,
        }
        query = self._fill(expression, values, step)
        return Query("query_range", {"query": query, **times})

    def _values_query(self, text: str, values: Mapping[str, str]) -> Query:
        filled = self._fill(text, values, SCRAPE_SECONDS)
        result = _QUERY_RESULT.fullmatch(filled)
        if result is None:
            message = f"unknown query of a variable: {text}"
            raise ValueError(message)
        return Query("query", {"query": result[1], "time": self.end})

    def _fill(self, text: str, values: Mapping[str, str], step: int) -> str:
        """Replace Grafana's variables."""
        known = {
            **values,
            "__interval": f"{step}s",
            "__interval_ms": str(step * 1000),
            "__rate_interval": f"{max(step + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS)}s",
            "__range": f"{self.seconds}s",
            "__range_s": str(self.seconds),
            "__range_ms": str(self.seconds * 1000),
        }
        return _VARIABLE.sub(
            lambda found: known.get(found[1] or found[2], found[0]), text
        )

"""Instant and range queries to a Prometheus, several at a time."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import requests

from keylag.errors import KeylagError, root_cause
from keylag.location import split_credentials

TIMEOUT_SECONDS: Final = 8
"""Timeout of a query; a diagnosis ends within ten seconds."""
PARALLEL: Final = 6


class PrometheusError(KeylagError):
    """Prometheus does not answer, or refuses a query."""


@dataclass(frozen=True)
class Sample:
    """One value of a result, with its labels."""

    labels: Mapping[str, str]
    value: float


def read_values(result: Iterable[Mapping[str, Any]]) -> tuple[Sample, ...]:
    """Return the values in the result of an instant query, which is a vector."""
    return tuple(Sample(one["metric"], float(one["value"][1])) for one in result)


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus by its URL, which may have credentials, without /api."""

    url: str

    def query(self, promql: str, at: float) -> tuple[Sample, ...]:
        """Return the values of a query at a time; raises PrometheusError."""
        parameters = {"query": promql, "time": f"{at:.3f}"}
        return read_values(self._ask("query", parameters)["result"])

    def query_all(
        self, queries: Mapping[str, str], at: float
    ) -> dict[str, tuple[Sample, ...]]:
        """Return the values of all queries by name."""
        with ThreadPoolExecutor(PARALLEL) as pool:
            found: Iterable[tuple[Sample, ...]] = pool.map(
                lambda promql: self.query(promql, at), queries.values()
            )
            return dict(zip(queries, found, strict=True))

    def query_range(
        self, promql: str, times: Sequence[float]
    ) -> dict[float, tuple[Sample, ...]]:
        """Return the values of a query at each of several times at equal distances."""
        start, step = times[0], times[1] - times[0]
        parameters = {
            "query": promql,
            "start": f"{start:.3f}",
            # Half a step more, so that rounding loses no point.
            "end": f"{times[-1] + step / 2:.3f}",
            "step": f"{step:.3f}",
        }
        found: dict[int, list[Sample]] = defaultdict(list)
        for one in self._ask("query_range", parameters)["result"]:
            for at, value in one["values"]:
                number = round((float(at) - start) / step)
                found[number].append(Sample(one["metric"], float(value)))
        return {at: tuple(found[number]) for number, at in enumerate(times)}

    def query_range_all(
        self, queries: Mapping[str, str], times: Sequence[float]
    ) -> dict[str, dict[float, tuple[Sample, ...]]]:
        """Return the values of all queries by name and time."""
        with ThreadPoolExecutor(PARALLEL) as pool:
            found = pool.map(
                lambda promql: self.query_range(promql, times), queries.values()
            )
            return dict(zip(queries, found, strict=True))

    def _ask(self, path: str, parameters: Mapping[str, str]) -> Any:
        bare, credentials = split_credentials(self.url)
        try:
            answer = requests.post(
                f"{bare.rstrip('/')}/api/v1/{path}",
                data=parameters,
                auth=credentials,
                timeout=TIMEOUT_SECONDS,
            )
            if "json" not in answer.headers.get("Content-Type", ""):
                answer.raise_for_status()
            content = answer.json()
        except requests.RequestException as error:
            message = (
                f"Prometheus does not answer at {bare}: {root_cause(error)}. "
                "Check the URL; --prometheus takes another one."
            )
            raise PrometheusError(message) from error
        if content.get("status") != "success":
            message = f"Prometheus refused a query: {content.get('error')}"
            raise PrometheusError(message)
        return content["data"]

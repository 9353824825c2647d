"""Reads the facts of a window from Prometheus."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from keylag.diagnosis.facts import OF_CALLS, Facts, Window, make_calls
from keylag.diagnosis.measurements import MEASUREMENTS, SOURCES
from keylag.diagnosis.prometheus import Prometheus

_PLACEHOLDER: Final = re.compile(r"\b(TOKENS|ALL|WINDOW)\b")
ROUTE: Final = 'http_route="/v3/auth/tokens"'
_EMPTY: Final = re.compile(r"\{\}|, *(?=\})|(?<=\{), *")


def fill(promql: str, seconds: float, matchers: str = "") -> str:
    """Return a query with its placeholders replaced, on one line."""
    values = {
        "TOKENS": ", ".join(filter(None, (ROUTE, matchers))),
        "ALL": matchers,
        "WINDOW": f"{seconds:.0f}s",
    }
    filled = _PLACEHOLDER.sub(lambda found: values[found[1]], promql)
    return _EMPTY.sub("", " ".join(filled.split()))


def read_facts(prometheus: Prometheus, window: Window, matchers: str = "") -> Facts:
    """Return what Prometheus knows of a window.

    `matchers` are added to every selector: `cluster="one"`.
    """
    sends = _senders(prometheus, window, matchers)
    names = [name for name, one in MEASUREMENTS.items() if one.source in sends]
    return _read(prometheus, window, matchers, names)


def read_calls(prometheus: Prometheus, window: Window, matchers: str = "") -> Facts:
    """Return the token calls of a window, and no other facts."""
    return _read(prometheus, window, matchers, OF_CALLS)


def _read(
    prometheus: Prometheus, window: Window, matchers: str, names: Iterable[str]
) -> Facts:
    queries = {
        name: fill(MEASUREMENTS[name].promql, window.seconds, matchers)
        for name in names
    }
    answers = prometheus.query_all(queries, window.end)
    return Facts(window, make_calls(answers, window), answers, queries)


def _senders(prometheus: Prometheus, window: Window, matchers: str) -> set[str]:
    witnesses: Mapping[str, str] = {
        name: fill(
            f"count(last_over_time({source.witness}[WINDOW]))", window.seconds, matchers
        )
        for name, source in SOURCES.items()
    }
    found = prometheus.query_all(witnesses, window.end)
    return {name for name, samples in found.items() if samples}

"""Recorded series: the rates of keylag-otel's counters, summed over workers.

A panel on raw series reads each worker's; a panel on recorded ones reads as many as
there are controllers.  Tables of queries are written on raw metrics: `use_recorded`
replaces `rate(metric{...}[RATE])` and `increase(metric{...}[SHOWN])`.

A second series has the mean of each recorded one over five minutes.  Panels over many
days read a tenth of the samples in it: the variable `recorded` has the end of the name.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from keylag_dashboards.categories import MATCHERS, TITLES
from keylag_dashboards.config import COARSE, COARSE_SECONDS, FINE, RECORDING_WINDOW
from keylag_dashboards.metrics import (
    HISTOGRAM_SERIES,
    instruments_by_kind,
    prometheus_name,
)
from keylag_dashboards.promql import expand
from keylag_otel.instruments import PROCESS, ROUTE

_RAW_RATE: Final = re.compile(
    r"\b(?P<function>rate|increase)\(\s*(?P<metric>\w+)\{(?P<matchers>[^{}]*)\}"
    r"\s*\[(?P<range>RATE|SHOWN)\]\s*\)"
)
_FINE: Final = re.compile(
    rf"(?P<name>\bkeylag:\w+):{FINE}(?P<rest>\{{[^{{}}]*\}}\[(?:STEP|SHOWN|SHOWN:STEP)\])"
)
_SELECTS_TOKENS: Final = re.compile(r"\b(?:TOKENS|ARMS|http_route=)")


@dataclass(frozen=True)
class RecordingRule:
    """A recorded series: its name, its query and its own labels."""

    name: str
    query: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Counter:
    """A counter, or a series of a histogram, that is recorded."""

    labels: tuple[str, ...]
    """Labels of its own, besides LEVEL."""
    tokens_only: bool
    """Whether only token calls are recorded: their route is one of a hundred."""


def _counters() -> Iterator[tuple[str, _Counter]]:
    """Yield the name in Prometheus of each counter of keylag-otel."""
    process = set(PROCESS.values())
    for instrument, kind in instruments_by_kind():
        if kind == "gauge" or instrument in process:
            continue
        labels = tuple(name.replace(".", "_") for name in instrument.attributes)
        tokens_only = ROUTE in instrument.attributes
        name = prometheus_name(instrument, kind)
        if kind == "counter":
            yield name, _Counter(labels, tokens_only)
            continue
        for suffix in HISTOGRAM_SERIES:
            more = ("le",) if suffix == "_bucket" else ()
            yield name + suffix, _Counter((*labels, *more), tokens_only)


COUNTERS: Final = dict(_counters())
_SECONDS: Final = "http_server_request_duration_seconds_sum"
_CALLS: Final = "http_server_request_duration_seconds_count"
_BUCKET: Final = "http_server_request_duration_seconds_bucket"
_PHASES: Final = "keystone_request_phase_time_seconds_total"
_RATES: Final[Mapping[str, tuple[str, str]]] = {
    "keylag:route_calls:rate": (_CALLS, "http_request_method, http_route"),
    "keylag:route_seconds:rate": (_SECONDS, "http_request_method, http_route"),
    "keylag:phase_seconds:rate": (_PHASES, "keystone_phase"),
    "keylag:gc_collections:rate": (
        "cpython_gc_collections_total",
        "cpython_gc_generation",
    ),
    "keylag:worker_calls:rate": (_CALLS, "instance"),
    "keylag:worker_busy_seconds:rate": (_SECONDS, "instance"),
    "keylag:worker_cpu_seconds:rate": ("process_cpu_time_seconds_total", "instance"),
    "keylag:worker_gc_seconds:rate": ("keystone_gc_time_seconds_total", "instance"),
}
"""Rates over all routes: name to metric and labels besides LEVEL."""
_SPREADS: Final = ("busy_seconds", "cpu_seconds", "gc_seconds")
"""Rates of each worker whose spread over the workers of a controller is recorded."""
_SPREAD_QUERIES: Final = {
    "highest": "max by (LEVEL) ({})",
    "median": "quantile by (LEVEL) (0.5, {})",
    "lowest": "min by (LEVEL) ({})",
}
_OF_ALL_HOSTS: Final = ("route_calls", "route_seconds")
"""Rates that are recorded for all controllers together, too."""
_TABLE_CLASSES: Final = (
    *(f"statement_duration_seconds_{part}" for part in ("bucket", "sum", "count")),
    *("rows_examined_total", "rows_sent_total", "lock_time_seconds_total"),
    *("full_scans_total", "temporary_tables_total"),
)
_STATEMENTS: Final = (
    *("query_time_seconds_total", "calls_total"),
    *("rows_examined_total", "rows_sent_total"),
)
"""Counters of the slow log that are recorded by table class, and by statement."""


def recorded_name(metric: str) -> str:
    """Return the name of a counter's recorded rate."""
    return f"keylag:{metric}:{FINE}"


def recorded_rates(window: str = RECORDING_WINDOW) -> Iterator[RecordingRule]:
    """Yield the rules that record rates of raw series, and what derives from them."""
    for metric, counter in COUNTERS.items():
        by = ", ".join(("LEVEL", *counter.labels))
        matchers = "{ALL_TOKENS}" if counter.tokens_only else ""
        query = f"sum by ({by}) (rate({metric}{matchers}[{window}]))"
        yield RecordingRule(recorded_name(metric), query)
    for name, (metric, labels) in _RATES.items():
        query = f"sum by (LEVEL, {labels}) (rate({metric}[{window}]))"
        yield RecordingRule(name, query)
    yield from _whole_cloud()
    yield from _token_calls()
    yield from _exporters(window)


def coarse_means() -> Iterator[RecordingRule]:
    """Yield the rules that record means of recorded rates."""
    for name in dict.fromkeys(rule.name for rule in recorded_rates()):
        coarse = name.removesuffix(FINE) + COARSE
        yield RecordingRule(coarse, f"avg_over_time({name}[{COARSE_SECONDS}s])")


def _whole_cloud() -> Iterator[RecordingRule]:
    """Yield what panels read of a cloud instead of each worker or each controller."""
    for rate in _SPREADS:
        for spread, query in _SPREAD_QUERIES.items():
            yield RecordingRule(
                f"keylag:worker_{rate}_spread:{FINE}",
                query.format(f"keylag:worker_{rate}:{FINE}"),
                {"spread": spread},
            )
    for rate in _OF_ALL_HOSTS:
        yield RecordingRule(
            f"keylag:job_{rate}:{FINE}",
            f"""sum by (JOB, http_request_method, http_route) (
                keylag:{rate}:{FINE})""",
        )


def _token_calls() -> Iterator[RecordingRule]:
    """Yield token calls, those in time, their histogram, and seconds by category.

    Panels over a week read these instead of each cell, status and bucket.
    """
    method = "sum by (LEVEL, http_request_method"
    kinds = f"{method}, http_response_status_code, keystone_auth_method)"
    calls = f"{method}) ({recorded_name(_CALLS)})"
    in_time = f"""{method}) ({recorded_name(_BUCKET)}{{
        IN_TIME, http_response_status_code!~"5.."}})"""
    yield RecordingRule("keylag:token_calls:rate", calls)
    yield RecordingRule(
        "keylag:token_calls_in_time:rate", f"{in_time} or 0 * keylag:token_calls:rate"
    )
    yield RecordingRule(
        "keylag:token_duration_bucket:rate", f"{method}, le) ({recorded_name(_BUCKET)})"
    )
    for category, matchers in MATCHERS.items():
        query = f"{kinds} ({recorded_name(_PHASES)}{{{matchers}}})"
        labels = {"category": TITLES[category]}
        yield RecordingRule("keylag:token_category_seconds:rate", query, labels)
    whole = f"{method}) (keylag:token_category_seconds:rate)"
    yield RecordingRule("keylag:token_seconds:rate", whole)


def _exporters(window: str) -> Iterator[RecordingRule]:
    """Yield rates of counters of the slow log, and of uWSGI's workers."""

    def rate(name: str, labels: str, metric: str, matchers: str = "") -> RecordingRule:
        query = f"sum by (TARGET{labels}) (rate({metric}{matchers}[{window}]))"
        return RecordingRule(f"keylag:{name}:{FINE}", query)

    for counter in _TABLE_CLASSES:
        labels = ", table_class, le" if "bucket" in counter else ", table_class"
        yield rate(f"logged_class_{counter}", labels, f"keylag_slow_log_{counter}")
    for counter in _STATEMENTS:
        yield rate(f"logged_statement_{counter}", ", id", f"keylag_slow_log_{counter}")
        yield RecordingRule(
            f"keylag:logged_job_statement_{counter}:{FINE}",
            f"sum by (JOB, id) (keylag:logged_statement_{counter}:{FINE})",
        )
    for part in ("sum", "count"):
        name = f"statement_duration_seconds_{part}"
        yield rate(
            f"logged_token_{name}",
            ", route, operation",
            f"keylag_slow_log_{name}",
            "{TOKENS_LOGGED}",
        )
    yield rate("uwsgi_busy_seconds", "", "keylag_uwsgi_worker_busy_seconds_total")


def panel_query(query: str) -> str:
    """Return a query as a panel sends it: on recorded series, without placeholders."""
    recorded = use_recorded(query)
    return expand(_FINE.sub(r"\g<name>:RECORDED\g<rest>", recorded))


def use_recorded(query: str) -> str:
    """Replace rates and increases of counters by their recorded series.

    Raises ValueError if a query selects calls of which only those for tokens are
    recorded, and does not select these.
    """
    return _RAW_RATE.sub(_recorded, query)


def _recorded(raw: re.Match[str]) -> str:
    counter = COUNTERS.get(raw["metric"])
    if counter is None:
        return raw[0]
    if counter.tokens_only and not _SELECTS_TOKENS.search(raw["matchers"]):
        message = f"only token calls are recorded: {raw[0]}"
        raise ValueError(message)
    series = f"{recorded_name(raw['metric'])}{{{raw['matchers']}}}"
    if raw["function"] == "increase":
        return f"(sum_over_time({series}[{raw['range']}]) * EVERY)"
    return f"avg_over_time({series}[STEP])"

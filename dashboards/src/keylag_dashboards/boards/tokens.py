"""Dashboard *Token calls*: the entry point for slow authentication."""

from typing import Final

from keylag_dashboards.boards.answers import ANSWERS
from keylag_dashboards.categories import TITLES, breakdown_columns, breakdown_table
from keylag_dashboards.config import (
    BAD,
    OBJECTIVE_SECONDS,
    OBJECTIVE_SHARE,
    UID_PREFIX,
)
from keylag_dashboards.model import Board, Column, Panel, Row
from keylag_dashboards.queries.tokens import AGES, EXEMPLARS, QUANTILES, QUERIES

STACK: Final = {title: f"category_{category}" for category, title in TITLES.items()}
SHARES: Final = {title: f"share_{category}" for category, title in TITLES.items()}
_BEFORE: Final = tuple(age for age in AGES if age != "now")
_NOT_YET: Final = "there are no data from that time yet"
_PARTS: Final = (
    "sql: Time in SQL per call",
    "cache: Time per round trip",
    "revocation: Time per call",
    "workers: Workers busy, by phase",
    "workers: Time of a hash",
)


def _split(title: str, name: str, hint: str, *explained_by: str) -> Panel:
    """Return a table of the breakdown, with a row per value of a label."""
    return Panel(
        f"By {title}",
        f"{hint} The columns after `wall` are means per call and add up to it.",
        "s",
        "table",
        breakdown_table(f"by_{name}"),
        width=24,
        height=5,
        columns=breakdown_columns(title),
        explained_by=explained_by,
    )


LIKELY_CAUSE: Final = Panel(
    "Likely cause",
    "What `keylag diagnose` finds in the last five minutes, and the seconds per second"
    " that it costs all token calls. Click its dashboard for the evidence; `keylag"
    " diagnose` has the lines to change, and docs/reference/causes.md describes each.",
    "short",
    "table",
    {"seconds per second": "likely_causes"},
    width=24,
    height=5,
    decimals=2,
    columns={
        "id": Column(width=70),
        "cause": Column(),
        "dashboard": Column(
            width=140,
            link=f"/d/{UID_PREFIX}${{__data.fields.dashboard}}"
            "?${__url_time_range}&${__all_variables}",
        ),
        "seconds per second": Column(width=200),
    },
    explained_by=("tokens: Time per call, by category",),
)

OVERVIEW: Final = Row(
    "All token calls",
    (
        LIKELY_CAUSE,
        *ANSWERS,
        Panel(
            "Latency, now and before",
            "Over five minutes. Slower than yesterday at the same time: not the usual"
            " load, but a change.",
            "s",
            "table",
            {age: f"quantiles {age}" for age in AGES},
            width=9,
            columns={"latency": Column(), **dict.fromkeys(AGES, Column("s", 75))},
            sorted_by="latency",
            explained_by=("tokens: Latency",),
        ),
        Panel(
            "Calls per second",
            "More GET: services validate more tokens, or cache fewer validations.",
            "reqps",
            "lines",
            {"{{http_request_method}}": "rate"},
            width=8,
            height=7,
            explained_by=(
                "services: Validations by user, counted in Keystone",
                "services: Hits",
            ),
        ),
        Panel(
            "Mean time of a call",
            "Shows which method became slow; the rows below show why.",
            "s",
            "lines",
            {"{{http_request_method}}": "mean"},
            width=7,
            height=7,
            explained_by=("tokens: Time per call, by category",),
        ),
    ),
)

BY_METHOD: Final = Row(
    "$method /v3/auth/tokens",
    (
        Panel(
            "Time per call, by category",
            "The categories add up to the wall time. Start with the widest.",
            "s",
            "stacked",
            STACK,
            explained_by=_PARTS,
        ),
        Panel(
            "Latency",
            "p99 far above p50: a few slow calls, by a cold cache or a stall. The"
            " histogram ends at 5 s: slower calls count as 5 s. Points are traced"
            " calls: click one to open its trace.",
            "s",
            "lines",
            {name: name for name in QUANTILES},
            exemplars=EXEMPLARS,
            explained_by=("tokens: Latency, all calls", "cache: Errors and stalls"),
        ),
        Panel(
            "Share of a call's time",
            "The category whose share grows is the cause.",
            "percentunit",
            "stacked",
            SHARES,
            maximum=1,
            explained_by=_PARTS,
        ),
        Panel(
            "Latency, all calls",
            "Two bands are two kinds of calls, such as cached and uncached.",
            "s",
            "heatmap",
            {"{{le}}": "duration_buckets"},
            explained_by=("cache: Hits by layer", "workers: Workers"),
        ),
        _split(
            "authentication method",
            "auth_method",
            "Passwords and secrets cost a hash, tokens do not.",
            "workers: Time of a hash",
        ),
        _split(
            "status",
            "status",
            "Rejected calls may cost as much as successful ones.",
            "tokens: Failed authentications",
        ),
        _split(
            "controller",
            "controller",
            "One slow controller: a problem of its host, or a cold cache.",
            "workers: Workers",
        ),
        Panel(
            "Mean time, now and before",
            "The same hour of another day separates load from change.",
            "s",
            "lines",
            {age: f"wall {age}" for age in AGES},
            empty_reason=_NOT_YET,
            empty_legends=_BEFORE,
            explained_by=("tokens: Categories, now and before",),
        ),
        Panel(
            "Categories, now and before",
            "The row with the largest difference is the cause.",
            "s",
            "table",
            {age: f"categories {age}" for age in AGES},
            height=8,
            columns={"category": Column(), **dict.fromkeys(AGES, Column("s", 80))},
            empty_reason=_NOT_YET,
            empty_legends=_BEFORE,
            explained_by=_PARTS,
        ),
    ),
    repeat="method",
)

BESIDE: Final = Row(
    "Errors and counts",
    (
        Panel(
            "Calls not in time",
            f"Share of calls above {OBJECTIVE_SECONDS} s or with status 5xx, over 5"
            f" minutes. The objective allows {1 - OBJECTIVE_SHARE:.0%}.",
            "percentunit",
            "lines",
            {"{{job}}": "not_in_time"},
            width=8,
            thresholds={round(1 - OBJECTIVE_SHARE, 6): BAD},
            explained_by=("tokens: Latency", "workers: Waiting connections"),
        ),
        Panel(
            "Refused and failed calls",
            "4xx: caused by clients. 5xx: caused by Keystone. A 401 may cost a hash,"
            " too.",
            "reqps",
            "lines",
            {"{{http_request_method}} {{http_response_status_code}}": "refused"},
            width=8,
            explained_by=("tokens: Failed authentications", "tokens: By status"),
        ),
        Panel(
            "Failed authentications",
            "By method and reason. A service with an old password fails repeatedly.",
            "reqps",
            "lines",
            {"{{keystone_auth_method}} {{error_type}}": "failures"},
            width=8,
            explained_by=("tokens: By authentication method",),
        ),
        Panel(
            "SQL statements per call",
            "Each is a round trip. An upgrade or a cold cache raises the number.",
            "short",
            "lines",
            {"{{http_request_method}}": "statements"},
            decimals=1,
            explained_by=("sql: Statements by table class", "cache: Hits by layer"),
        ),
        Panel(
            "Cache calls per call",
            "Each is a round trip. Zero: the cache has no backend.",
            "short",
            "lines",
            {"{{http_request_method}}": "cache_calls"},
            decimals=1,
            explained_by=("cache: Look-ups by layer",),
        ),
    ),
)

BOARD: Final = Board(
    name="tokens",
    title="Keylag / Token calls",
    purpose="Slow authentication: which calls, since when, and in which category.",
    queries=QUERIES,
    variables=("cluster", "region", "job", "host", "method"),
    rows=(OVERVIEW, BY_METHOD, BESIDE),
)

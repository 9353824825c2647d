"""Dashboard *Token calls*: the entry point for slow authentication."""

from typing import Final

from keylag_dashboards.categories import TITLES, breakdown_columns
from keylag_dashboards.config import OBJECTIVE_SECONDS, OBJECTIVE_SHARE
from keylag_dashboards.model import Board, Panel, Row
from keylag_dashboards.queries.tokens import AGES, QUERIES

STACK: Final = {title: f"category_{category}" for category, title in TITLES.items()}
_BEFORE: Final = tuple(age for age in AGES if age != "now")


def _split(title: str, name: str, hint: str) -> Panel:
    """Return a table of the breakdown, with a row per value of a label."""
    return Panel(
        f"By {title}",
        f"{hint} The columns after `wall` are means per call and add up to it.",
        "s",
        "table",
        breakdown_columns(f"by_{name}"),
        width=24,
        units={"calls": "short"},
    )


OVERVIEW: Final = Row(
    "All token calls",
    (
        Panel(
            "Calls per second",
            "More GET: services validate more tokens, or cache fewer validations.",
            "reqps",
            "lines",
            {"{{http_request_method}}": "rate"},
            width=8,
        ),
        Panel(
            "Mean time of a call",
            "Shows which method became slow; the rows below show why.",
            "s",
            "lines",
            {"{{http_request_method}}": "mean"},
            width=8,
        ),
        Panel(
            "Calls not in time",
            f"Share of calls above {OBJECTIVE_SECONDS} s or with status 5xx, over 5"
            f" minutes. The objective allows {1 - OBJECTIVE_SHARE:.0%}.",
            "percentunit",
            "lines",
            {"{{job}}": "not_in_time"},
            width=8,
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
            drill_down=("sql", "cache", "revocation", "workers"),
        ),
        Panel(
            "Share of a call's time",
            "The category whose share grows is the cause.",
            "s",
            "share",
            STACK,
        ),
        Panel(
            "Latency",
            "p99 far above p50: a few slow calls, by a cold cache or a stall.",
            "s",
            "lines",
            {"p50": "p50", "p95": "p95", "p99": "p99"},
        ),
        Panel(
            "Latency, all calls",
            "Two bands are two kinds of calls, such as cached and uncached.",
            "s",
            "heatmap",
            {"{{le}}": "duration_buckets"},
        ),
        _split(
            "authentication method",
            "auth_method",
            "Passwords and secrets cost a hash, tokens do not.",
        ),
        _split(
            "status", "status", "Rejected calls may cost as much as successful ones."
        ),
        _split(
            "worker",
            "worker",
            "One slow worker: a problem of its host, or a cold cache.",
        ),
        Panel(
            "Mean time, now and before",
            "The same hour of another day separates load from change.",
            "s",
            "lines",
            {age: f"wall {age}" for age in AGES},
            empty_reason="there are no data from that time yet",
            empty_legends=_BEFORE,
        ),
        Panel(
            "Categories, now and before",
            "The row with the largest difference is the cause.",
            "s",
            "table",
            {age: f"categories {age}" for age in AGES},
            empty_reason="there are no data from that time yet",
            empty_legends=_BEFORE,
        ),
    ),
    repeat="method",
)

BESIDE: Final = Row(
    "Errors and counts",
    (
        Panel(
            "Refused and failed calls",
            "4xx: caused by clients. 5xx: caused by Keystone. A 401 may cost a hash,"
            " too.",
            "reqps",
            "lines",
            {"{{http_request_method}} {{http_response_status_code}}": "refused"},
            empty_reason="no call was refused",
        ),
        Panel(
            "Failed authentications",
            "By method and reason. A service with an old password fails repeatedly.",
            "reqps",
            "lines",
            {"{{keystone_auth_method}} {{error_type}}": "failures"},
            empty_reason="no authentication failed",
        ),
        Panel(
            "SQL statements per call",
            "Each is a round trip. An upgrade or a cold cache raises the number.",
            "short",
            "lines",
            {"{{http_request_method}}": "statements"},
            drill_down=("sql",),
        ),
        Panel(
            "Cache calls per call",
            "Each is a round trip. Zero: the cache has no backend.",
            "short",
            "lines",
            {"{{http_request_method}}": "cache_calls"},
            drill_down=("cache",),
        ),
    ),
)

BOARD: Final = Board(
    name="tokens",
    title="Keylag / Token calls",
    purpose="Slow authentication: which calls, since when, and in which category.",
    queries=QUERIES,
    variables=("job", "instance", "method"),
    rows=(OVERVIEW, BY_METHOD, BESIDE),
)

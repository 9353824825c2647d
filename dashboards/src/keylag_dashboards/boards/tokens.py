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
        f"{hint} Columns after `wall` are a call's mean and add up to it.",
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
            "A jump in GET: services validate more, or cache validations less.",
            "reqps",
            "lines",
            {"{{http_request_method}}": "rate"},
            width=8,
        ),
        Panel(
            "Mean time of a call",
            "Which of the calls became slow; the sections below say why.",
            "s",
            "lines",
            {"{{http_request_method}}": "mean"},
            width=8,
        ),
        Panel(
            "Calls not in time",
            f"Share of calls over {OBJECTIVE_SECONDS} s or answered 5xx, in 5 minutes;"
            f" the objective allows {1 - OBJECTIVE_SHARE:.0%}.",
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
            "The stack adds up to the wall time: begin with the widest category.",
            "s",
            "stacked",
            STACK,
            drill_down=("sql", "cache", "revocation", "workers"),
        ),
        Panel(
            "Share of a call's time",
            "A category whose share grows while the others keep theirs is the cause.",
            "s",
            "share",
            STACK,
        ),
        Panel(
            "Latency",
            "A p99 far above p50 is few slow calls: a cold cache, a stall.",
            "s",
            "lines",
            {"p50": "p50", "p95": "p95", "p99": "p99"},
        ),
        Panel(
            "Latency, all calls",
            "Two bands are two kinds of calls, such as cached and uncached ones.",
            "s",
            "heatmap",
            {"{{le}}": "duration_buckets"},
        ),
        _split(
            "authentication method",
            "auth_method",
            "Passwords and secrets pay for a hash, a token does not.",
        ),
        _split("status", "status", "Refused calls may cost as much as granted ones."),
        _split("worker", "worker", "One slow worker is a sick host or a cold cache."),
        Panel(
            "Mean time, now and before",
            "The same hour of another day tells load from change.",
            "s",
            "lines",
            {age: f"wall {age}" for age in AGES},
            empty_reason="the data do not reach so far back yet",
            empty_legends=_BEFORE,
        ),
        Panel(
            "Categories, now and before",
            "The row that differs most is what changed.",
            "s",
            "table",
            {age: f"categories {age}" for age in AGES},
            empty_reason="the data do not reach so far back yet",
            empty_legends=_BEFORE,
        ),
    ),
    repeat="method",
)

BESIDE: Final = Row(
    "What goes with it",
    (
        Panel(
            "Refused and failed calls",
            "4xx is the callers' doing, 5xx Keystone's; a 401 may cost a hash too.",
            "reqps",
            "lines",
            {"{{http_request_method}} {{http_response_status_code}}": "refused"},
            empty_reason="no call was refused",
        ),
        Panel(
            "Authentications refused",
            "Which method, and why: a service with an old password fails for ever.",
            "reqps",
            "lines",
            {"{{keystone_auth_method}} {{error_type}}": "failures"},
            empty_reason="no authentication was refused",
        ),
        Panel(
            "SQL statements per call",
            "Each is a round trip; more after an upgrade or with a cold cache.",
            "short",
            "lines",
            {"{{http_request_method}}": "statements"},
            drill_down=("sql",),
        ),
        Panel(
            "Cache calls per call",
            "Each is a round trip; none at all is a cache without a backend.",
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
    purpose="Auth is slow: which calls, since when, and where their time goes.",
    queries=QUERIES,
    variables=("job", "instance", "method"),
    rows=(OVERVIEW, BY_METHOD, BESIDE),
)

"""Dashboard *Revocation*: the cost of a check and the revocation table."""

from typing import Final

from keylag_dashboards.config import BAD, GOOD
from keylag_dashboards.model import Annotation, Board, Column, Panel, Row, State
from keylag_dashboards.queries.revocation import PARTS, QUERIES

CHECK: Final = Row(
    "Revocation check in token calls",
    (
        Panel(
            "Time per call",
            "High SQL time: many rows or a missing index. High matching time: many"
            " events to compare in Python.",
            "s",
            "stacked",
            {part: f"check {part}" for part in PARTS},
            explained_by=(
                "revocation: Events per check",
                "revocation: Indexes",
                "sql: Statements with the most time",
            ),
        ),
        Panel(
            "Checks",
            "A miss reads the database. In Keystone 30 each log-out invalidates all"
            " cached checks.",
            "ops",
            "lines",
            {"{{keystone_cache_result}}": "checks"},
            width=6,
            explained_by=("cache: Invalidations of whole regions",),
        ),
        Panel(
            "Database time",
            "Seconds per second that the database spends on revocation_event.",
            "s",
            "lines",
            {"{{operation}}": "server"},
            width=6,
            explained_by=("sql: Statements with the most time",),
        ),
        Panel(
            "Events fetched",
            "By kind. Each event is loaded and compared in Python.",
            "eps",
            "lines",
            {"{{keystone_revocation_kind}}": "fetched"},
            explained_by=("revocation: Live events",),
        ),
        Panel(
            "Events written",
            "audit_chain events slow down every check, other kinds only checks of"
            " their own user or project.",
            "eps",
            "lines",
            {"{{keystone_revocation_kind}}": "written"},
        ),
    ),
)

TABLE: Final = Row(
    "The table",
    (
        Panel(
            "Live events",
            "Unexpired events by kind. At the limit the true number is higher.",
            "short",
            "stacked",
            {"{{kind}}": "live", "counting limit": "limit"},
            decimals=0,
            limits=("counting limit",),
            empty_reason="there are far fewer events than the limit",
            empty_legends=("counting limit",),
            explained_by=("revocation: Growth",),
        ),
        Panel(
            "Expired events",
            "Keystone purges them when it writes the next event.",
            "short",
            "lines",
            {"expired": "expired"},
            width=6,
            decimals=0,
        ),
        Panel(
            "Growth",
            "Inserted events per second. The usual cause is a service that logs out.",
            "eps",
            "lines",
            {"inserted": "growth"},
            width=6,
            explained_by=("services: Validations by user, counted in Keystone",),
        ),
        Panel(
            "Events per check",
            "Events that a check fetches for any token, at the end (whole) or in the"
            " middle (half) of its lifetime.",
            "short",
            "lines",
            {"{{token_age}} lifetime": "per_check"},
            width=8,
            decimals=0,
        ),
        Panel(
            "Predicted time of a check",
            "Events per check times the cost of one event. Shorter token lifetimes"
            " reduce it.",
            "s",
            "lines",
            {"{{token_age}} lifetime": "predicted"},
            width=8,
            thresholds={0.05: BAD},
            explained_by=("revocation: Events per check", "revocation: Indexes"),
        ),
        Panel(
            "Oldest event",
            "Much older than a token's lifetime: no event was purged.",
            "s",
            "stat",
            {"age": "oldest"},
            width=8,
            height=8,
            decimals=1,
        ),
        Panel(
            "Indexes",
            "`since` is the release of Keystone that added the index.",
            "short",
            "table",
            {"index": "indexes"},
            width=24,
            height=6,
            columns={
                "columns": Column(),
                "since": Column(width=140),
                "index": Column(
                    width=140,
                    states={0: State("missing", BAD), 1: State("present", GOOD)},
                ),
            },
        ),
    ),
    source="revocations",
)

BOARD: Final = Board(
    name="revocation",
    title="Keylag / Revocation",
    purpose="The cost of revocation checks, and the table behind it.",
    queries=QUERIES,
    variables=("cluster", "region", "job", "host", "method", "exporter"),
    rows=(CHECK, TABLE),
    annotations=(
        Annotation("Token revoked", "deleted", "red"),
        Annotation("Region flushed", "flushed", "green"),
    ),
)

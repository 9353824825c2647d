"""Dashboard *Revocation*: the cost of a check and the revocation table."""

from typing import Final

from keylag_dashboards.model import Annotation, Board, Panel, Row
from keylag_dashboards.queries.revocation import PARTS, QUERIES

CHECK: Final = Row(
    "The check, as part of a token call",
    (
        Panel(
            "Time per call",
            "SQL: many rows or no index. Matching: too many events for Python.",
            "s",
            "stacked",
            {part: f"check {part}" for part in PARTS},
            drill_down=("tokens",),
        ),
        Panel(
            "Checks",
            "A miss asks the database; in Keystone 30 a log-out makes all miss.",
            "ops",
            "lines",
            {"{{keystone_cache_result}}": "checks"},
            width=6,
            drill_down=("cache",),
        ),
        Panel(
            "In the database",
            "Seconds per second that the server works on revocation_event.",
            "s",
            "lines",
            {"{{operation}}": "server"},
            width=6,
            drill_down=("sql",),
        ),
        Panel(
            "Events fetched",
            "By what they revoke: each is loaded and compared in Python.",
            "ops",
            "lines",
            {"{{keystone_revocation_kind}}": "fetched"},
        ),
        Panel(
            "Events written",
            "audit_chain events burden every check, others those of their own user"
            " or project.",
            "ops",
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
            "What Keystone has to keep, by kind; at the limit there are more.",
            "short",
            "lines",
            {"{{kind}}": "live", "limit of counting": "limit"},
        ),
        Panel(
            "Expired events",
            "Not purged: Keystone removes them when it writes the next event.",
            "short",
            "lines",
            {"expired": "expired"},
            width=6,
        ),
        Panel(
            "Growth",
            "Events per second; log-outs of services are the usual source.",
            "ops",
            "lines",
            {"inserted": "growth"},
            width=6,
        ),
        Panel(
            "Events each check fetches",
            "For a token of whole or half a lifetime, whoever's it is.",
            "short",
            "lines",
            {"{{token_age}} lifetime": "per_check"},
            width=8,
        ),
        Panel(
            "Predicted time of a check",
            "Events per check times what one costs; shorter tokens make it smaller.",
            "s",
            "lines",
            {"{{token_age}} lifetime": "predicted"},
            width=8,
        ),
        Panel(
            "Oldest event",
            "Much older than a token's lifetime: nothing purges.",
            "s",
            "stat",
            {"age": "oldest"},
            width=8,
        ),
        Panel(
            "Indexes",
            "1 is there, 0 is missing; `since` is the release that added it.",
            "short",
            "table",
            {"present": "indexes"},
            width=24,
        ),
    ),
)

BOARD: Final = Board(
    name="revocation",
    title="Keylag / Revocation",
    purpose="What checking for revocation costs, and the table that decides it.",
    queries=QUERIES,
    variables=("job", "instance", "method", "exporter"),
    rows=(CHECK, TABLE),
    annotations=(
        Annotation("Token revoked", "deleted", "red"),
        Annotation("Region flushed", "flushed", "green"),
    ),
)

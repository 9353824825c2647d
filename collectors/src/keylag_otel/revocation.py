"""Hooks that count fetched and written revocation events by kind."""

from __future__ import annotations

from collections import Counter
from typing import Any

from keylag_otel.counters import counter_id

#: Kind of revocation by attribute of an event, most specific first: an event with an
#: audit id may have a user id too.
KINDS = {
    "audit_chain_id": "audit_chain",
    "audit_id": "audit_id",
    "access_token_id": "access_token",
    "consumer_id": "consumer",
    "trust_id": "trust",
    "role_id": "role",
    "project_id": "project",
    "user_id": "user",
    "domain_id": "domain",
    "domain_scope_id": "domain",
}


def kind_of(event: Any) -> str:
    """Return the kind of an event, or `other`."""
    for attribute, kind in KINDS.items():
        if getattr(event, attribute, None) is not None:
            return kind
    return "other"


def count_fetched_events(timer: Any, args: tuple[Any, ...], events: Any) -> None:
    """Count the events that the database returned."""
    del args
    for kind, count in Counter(map(kind_of, events)).items():
        timer.increment(counter_id("revocation_events_fetched", kind), count)


def count_written_event(
    timer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count an event that is written."""
    event = args[1] if len(args) > 1 else kwargs["event"]
    timer.increment(counter_id("revocation_events_written", kind_of(event)))

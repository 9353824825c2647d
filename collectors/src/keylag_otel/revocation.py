"""Revocation events: how many are fetched and written, and what they revoke."""

from __future__ import annotations

from collections import Counter
from typing import Any

from keylag_otel.tally import tally

#: Attribute of an event to the kind of revocation, the most telling first: an
#: event by audit id may name a user too.
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
    """Return what an event revokes; `other` if nothing that is known."""
    for attribute, kind in KINDS.items():
        if getattr(event, attribute, None) is not None:
            return kind
    return "other"


def note_fetched(clock: Any, args: tuple[Any, ...], events: Any) -> None:
    """Count the events that the database returned for a token."""
    del args
    for kind, count in Counter(map(kind_of, events)).items():
        clock.tally(tally("revocation_events_fetched", kind), count)


def note_written(clock: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count an event that is written."""
    event = args[1] if len(args) > 1 else kwargs["event"]
    clock.tally(tally("revocation_events_written", kind_of(event)))

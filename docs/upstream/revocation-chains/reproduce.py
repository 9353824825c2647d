"""Counts the revocation events that a validation reads, and matches in Python."""

import datetime as dt
import tempfile
import uuid
from pathlib import Path

from keystone.common import sql
from keystone.conf import CONF, configure
from keystone.revoke.backends.sql import RevocationEvent, Revoke

EVENTS = 1000
NOW = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - as in the database
CHAIN = "the chain of the token"


def find_fault() -> str:
    """Return how many events of other tokens' chains are read."""
    configure()
    CONF([], project="keystone", default_config_files=[], default_config_dirs=[])
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'keystone.db'}"
        sql.initialize()
        CONF.set_override("connection", url, "database")
        with sql.session_for_write() as session:
            RevocationEvent.metadata.create_all(
                session.get_bind(), tables=[RevocationEvent.__table__]
            )
        chains = [uuid.uuid4().hex for _ in range(EVENTS)]
        with sql.session_for_write() as session:
            session.add_all(_event(chain) for chain in [*chains, CHAIN])
        found = Revoke().list_events(token=_token())
        sql.cleanup()
    if CHAIN not in {one.audit_chain_id for one in found}:
        return "the event of the token's own chain was not read"
    others = len(found) - 1
    if not others:
        return ""
    return f"{others} of {EVENTS} events of other tokens' chains are read"


def _event(chain: str) -> RevocationEvent:
    return RevocationEvent(audit_chain_id=chain, issued_before=NOW, revoked_at=NOW)


def _token() -> dict[str, object]:
    others = ("user_id", "trustor_id", "trustee_id", "project_id", "audit_id")
    return {
        **dict.fromkeys([*others, "trust_id"]),
        "audit_chain_id": CHAIN,
        "issued_at": NOW - dt.timedelta(minutes=1),
    }

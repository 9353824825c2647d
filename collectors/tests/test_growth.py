"""Users, tokens and revocations may grow a thousandfold; what Keylag keeps may not."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest
from keystone_client import Keystone, password
from keystone_site import Site
from test_canaries import metrics_reader

#: What it says is what Keystone 30 does.
pytestmark = pytest.mark.newest

FEW, MANY = 1, 1000
LOG_INS = {FEW: 1, MANY: 100}


def revoke_others(number: int) -> None:
    """Write events that revoke other tokens, straight into the database."""
    from keystone.common import sql
    from keystone.revoke.backends.sql import RevocationEvent
    from oslo_utils import timeutils
    from sqlalchemy import insert

    moment = timeutils.utcnow()
    rows = [
        {
            "audit_chain_id": f"chain-{number}-{i}",
            "issued_before": moment,
            "revoked_at": moment,
        }
        for i in range(number)
    ]
    with sql.session_for_write() as session:
        session.execute(insert(RevocationEvent), rows)


def grow(keystone: Keystone, number: int) -> int:
    """Use this many ids, tokens and paths; return the events that were fetched."""
    token = keystone.issue(password("admin")).token
    revoke_others(number)
    fetched = keystone.validate(keystone.admin, token).booked
    for i in range(LOG_INS[number]):
        keystone.issue(password(f"user-{number}-{i}"))
    meet_strangers(keystone, number)
    return fetched.tallied("revocation_events_fetched", "audit_chain")


def meet_strangers(keystone: Keystone, number: int) -> None:
    """Refuse as many requests, each with a token and an id of its own."""
    for i in range(number):
        stranger = f"token-{number}-{i}"
        keystone.call("GET", f"/v3/users/{number}-{i}", None, stranger)
    keystone.finished.clear()


def kept() -> dict[str, int]:
    """Return the sizes of all that Keylag keeps."""
    from keylag_otel import ledger, sql_comment, statements, tally

    return {
        "ledger rows": len(ledger.LEDGER.rows()),
        "ledger cells": sum(len(totals.spent()) for _, totals in ledger.LEDGER.rows()),
        "ledger tallies": len(ledger.LEDGER.tallies),
        "tallies": len(tally._keys),
        "routes": ledger.route_template.cache_info().currsize,
        "comments": sql_comment.comment.cache_info().currsize,
        "statements": len(statements._known),
    }


def series(reader: Any) -> int:
    """Return how many series are exported."""
    return sum(
        len(metric.data.data_points)
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    )


def own_bytes() -> int:
    """Return the bytes that Keylag's own code has allocated and still holds."""
    gc.collect()
    own = tracemalloc.Filter(inclusive=True, filename_pattern="*/keylag_otel/*")
    snapshot = tracemalloc.take_snapshot().filter_traces([own])
    return sum(statistic.size for statistic in snapshot.statistics("filename"))


def drive(keystone: Keystone) -> dict[str, Any]:
    reader = metrics_reader()
    grow(keystone, FEW)
    sizes = []
    for number in (FEW, MANY):
        fetched = grow(keystone, number)
        sizes.append((kept(), series(reader), fetched))
    tracemalloc.start()
    held = []
    for number in (50, 250):
        meet_strangers(keystone, number)
        held.append(own_bytes())
    return {"sizes": sizes, "held": held}


@pytest.fixture(scope="module")
def grown(processes, prepared, tmp_path_factory) -> Any:
    return Site(processes, prepared, tmp_path_factory.mktemp("growth")).run(drive)


def test_as_many_events_were_there_to_be_fetched(grown) -> None:
    (*_, few), (*_, many) = grown["sizes"]

    assert few >= FEW
    assert many >= MANY


def test_nothing_that_is_kept_grows_with_users_tokens_or_events(grown) -> None:
    (few, few_series, _), (many, many_series, _) = grown["sizes"]

    assert many == few
    assert many_series == few_series


def test_a_request_leaves_nothing_in_our_own_memory(grown) -> None:
    before, after = grown["held"]

    assert after - before < 4_096  # 16 bytes for each of the 250

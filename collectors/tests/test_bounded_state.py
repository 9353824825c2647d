"""Keylag's state is independent of the number of users, tokens and revocations."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest
from keystone_client import Keystone, password
from keystone_site import Site
from test_secret_leaks import metrics_reader

#: The expectations are those of Keystone 30.
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
    fetched = keystone.validate(keystone.admin, token).breakdown
    for i in range(LOG_INS[number]):
        keystone.issue(password(f"user-{number}-{i}"))
    send_rejected_requests(keystone, number)
    return fetched.counter_sum("revocation_events_fetched", "audit_chain")


def send_rejected_requests(keystone: Keystone, number: int) -> None:
    """Send this many rejected requests, each with its own token and id."""
    for i in range(number):
        token = f"token-{number}-{i}"
        keystone.call("GET", f"/v3/users/{number}-{i}", None, token)
    keystone.breakdowns.clear()


def kept() -> dict[str, int]:
    """Return the sizes of Keylag's state."""
    from keylag_otel import counters, request_aggregator, sql_comment, statements

    return {
        "aggregates": len(request_aggregator.AGGREGATOR.aggregates()),
        "cells": sum(
            len(aggregate.self_times())
            for _, aggregate in request_aggregator.AGGREGATOR.aggregates()
        ),
        "counter values": len(request_aggregator.AGGREGATOR.counters),
        "counters": len(counters._keys),
        "routes": request_aggregator.route_template.cache_info().currsize,
        "comments": sql_comment.comment.cache_info().currsize,
        "statements": len(statements._cached_ids),
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
    """Return the bytes that Keylag's code has allocated and not freed."""
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
        send_rejected_requests(keystone, number)
        held.append(own_bytes())
    return {"sizes": sizes, "held": held}


@pytest.fixture(scope="module")
def grown(processes, prepared, tmp_path_factory) -> Any:
    return Site(processes, prepared, tmp_path_factory.mktemp("growth")).run(drive)


def test_all_revocation_events_were_fetched(grown) -> None:
    (*_, few), (*_, many) = grown["sizes"]

    assert few >= FEW
    assert many >= MANY


def test_state_is_independent_of_users_tokens_and_events(grown) -> None:
    (few, few_series, _), (many, many_series, _) = grown["sizes"]

    assert many == few
    assert many_series == few_series


def test_requests_leak_no_memory_of_keylag(grown) -> None:
    before, after = grown["held"]

    assert after - before < 4_096  # 16 bytes for each of the 250

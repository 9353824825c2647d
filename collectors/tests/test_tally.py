"""Tallies: small numbers for counters, and never too many of them."""

from __future__ import annotations

import pytest

from keylag_otel import instruments, tally
from keylag_otel.clock import start
from keylag_otel.ledger import Ledger


def test_the_same_values_are_the_same_tally() -> None:
    first = tally.tally("cache_invalidations", "tokens")

    assert tally.tally("cache_invalidations", "tokens") == first
    assert tally.tally("cache_invalidations", "revoke") != first


def test_a_tally_knows_its_attributes_by_name() -> None:
    number = tally.tally("sql_errors", "project", "deadlock")

    assert tally.attributes_of(number) == (
        "sql_errors",
        {instruments.TABLE_CLASS: "project", instruments.ERROR_TYPE: "deadlock"},
    )


def test_beyond_the_limit_everything_is_counted_as_other(monkeypatch) -> None:
    monkeypatch.setattr(tally, "LIMIT", 0)

    numbers = {tally.tally("cache_invalidations", f"made-up-{n}") for n in range(100)}

    assert len(numbers) == 1
    _, attributes = tally.attributes_of(numbers.pop())
    assert attributes == {instruments.CACHE_REGION: "other"}


def test_tallies_of_requests_add_up_in_the_ledger() -> None:
    ledger = Ledger()
    number = tally.tally("sql_rows", "catalog")
    for _ in range(3):
        clock = start({"REQUEST_METHOD": "GET"})
        clock.tally(number, 7)
        ledger.add(clock, 200)

    assert list(ledger.tallied("sql_rows")) == [
        (21, {instruments.TABLE_CLASS: "catalog"})
    ]


def test_a_fault_of_ours_is_counted_by_place() -> None:
    ledger = Ledger()

    ledger.fault("CacheRegion.get")

    assert list(ledger.tallied("faults")) == [
        (1, {instruments.SEAM: "CacheRegion.get"})
    ]


@pytest.mark.parametrize("name", instruments.TALLIES)
def test_every_tally_takes_a_value_for_each_attribute(name) -> None:
    attributes = instruments.TALLIES[name].attributes
    number = tally.tally(name, *attributes)

    assert tally.attributes_of(number) == (name, dict(zip(attributes, attributes)))

"""Tallies: small numbers for counters, and never too many of them."""

from __future__ import annotations

from collections import Counter

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


@pytest.fixture
def empty(monkeypatch) -> None:
    """A process that has counted nothing yet."""
    for name, value in (("_ids", {}), ("_keys", []), ("_sizes", Counter())):
        monkeypatch.setattr(tally, name, value)


@pytest.mark.parametrize("name", ["cache_invalidations", "auth_failures"])
def test_beyond_an_instruments_limit_all_is_one_tally(empty, name) -> None:
    instrument = instruments.TALLIES[name]
    width = len(instrument.attributes)

    numbers = [tally.tally(name, *[f"made-up-{n}"] * width) for n in range(5000)]

    assert len(set(numbers)) == len(tally._keys) == instrument.limit + 1
    assert tally.attributes_of(numbers[-1]) == (name, {instruments.OVERFLOW: True})
    assert tally.attributes_of(numbers[0])[1] == dict.fromkeys(
        instrument.attributes, "made-up-0"
    )
    assert tally.tally(name, *["made-up-0"] * width) == numbers[0]


def test_one_instruments_overflow_leaves_the_others_alone(empty) -> None:
    for n in range(5000):
        tally.tally("auth_failures", f"made-up-{n}", "other")

    number = tally.tally("sql_errors", "project", "deadlock")

    assert tally.attributes_of(number)[1][instruments.TABLE_CLASS] == "project"


def test_all_tallies_together_have_a_place_in_c() -> None:
    limits = [one.limit + 1 for one in tally._TALLIES.values()]

    assert sum(limits) <= 4096  # TALLIES in native/sums.c: the rest is in a dictionary


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

"""Counter ids and the cardinality limits of counters."""

from __future__ import annotations

from collections import Counter

import pytest

from keylag_otel import counters, instruments
from keylag_otel.request_aggregator import RequestAggregator
from keylag_otel.request_timer import start_timer


def test_equal_values_have_the_same_counter_id() -> None:
    first = counters.counter_id("cache_invalidations", "tokens")

    assert counters.counter_id("cache_invalidations", "tokens") == first
    assert counters.counter_id("cache_invalidations", "revoke") != first


def test_counter_has_attributes_by_name() -> None:
    number = counters.counter_id("sql_errors", "project", "deadlock")

    assert counters.counter_attributes(number) == (
        "sql_errors",
        {instruments.TABLE_CLASS: "project", instruments.ERROR_TYPE: "deadlock"},
    )


@pytest.fixture
def empty(monkeypatch) -> None:
    """A process that has counted nothing yet."""
    for name, value in (("_ids", {}), ("_keys", []), ("_sizes", Counter())):
        monkeypatch.setattr(counters, name, value)


@pytest.mark.parametrize("name", ["cache_invalidations", "auth_failures"])
def test_beyond_the_limit_values_share_the_overflow_counter(empty, name) -> None:
    instrument = instruments.COUNTERS[name]
    width = len(instrument.attributes)

    numbers = [
        counters.counter_id(name, *[f"made-up-{n}"] * width) for n in range(5000)
    ]

    assert len(set(numbers)) == len(counters._keys) == instrument.limit + 1
    assert counters.counter_attributes(numbers[-1]) == (
        name,
        {instruments.OVERFLOW: True},
    )
    assert counters.counter_attributes(numbers[0])[1] == dict.fromkeys(
        instrument.attributes, "made-up-0"
    )
    assert counters.counter_id(name, *["made-up-0"] * width) == numbers[0]


def test_overflow_of_one_instrument_spares_the_others(empty) -> None:
    for n in range(5000):
        counters.counter_id("auth_failures", f"made-up-{n}", "other")

    number = counters.counter_id("sql_errors", "project", "deadlock")

    assert counters.counter_attributes(number)[1][instruments.TABLE_CLASS] == "project"


def test_all_limits_fit_into_the_native_array() -> None:
    limits = [one.limit + 1 for one in counters._INSTRUMENTS.values()]

    assert sum(limits) <= 4096  # COUNTER_ARRAY_SIZE of the native part


def test_counters_add_up_in_the_aggregator() -> None:
    aggregator = RequestAggregator()
    number = counters.counter_id("sql_rows", "catalog")
    for _ in range(3):
        timer = start_timer({"REQUEST_METHOD": "GET"})
        timer.increment(number, 7)
        aggregator.add(timer, 200)

    assert list(aggregator.counter_values("sql_rows")) == [
        (21, {instruments.TABLE_CLASS: "catalog"})
    ]


def test_faults_are_counted_by_seam() -> None:
    aggregator = RequestAggregator()

    aggregator.count_fault("CacheRegion.get")

    assert list(aggregator.counter_values("faults")) == [
        (1, {instruments.SEAM: "CacheRegion.get"})
    ]


@pytest.mark.parametrize("name", instruments.COUNTERS)
def test_every_counter_has_a_value_per_attribute(name) -> None:
    attributes = instruments.COUNTERS[name].attributes
    number = counters.counter_id(name, *attributes)

    assert counters.counter_attributes(number) == (
        name,
        dict(zip(attributes, attributes)),
    )

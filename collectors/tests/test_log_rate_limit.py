"""The log rate limit suppresses repeated messages only."""

from __future__ import annotations

import logging

import pytest

from keylag_otel.log_rate_limit import (
    INTERVAL_SECONDS,
    RateLimitFilter,
    add_log_filter,
    remove_log_filters,
)


@pytest.fixture
def heard() -> tuple[list[int], list[str], logging.Logger]:
    """The time, the logged messages, and a logger with a rate limit."""
    now, said = [0], []
    logger = logging.getLogger("opentelemetry.exporter.made_up")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger.addHandler(handler)
    logger.addFilter(RateLimitFilter(lambda: now[0]))
    yield now, said, logger
    logger.filters.clear()
    logger.handlers.clear()


def test_each_place_logs_once_per_interval_with_suppressed_count(heard) -> None:
    now, said, logger = heard

    for second in (0, 1, 2, INTERVAL_SECONDS + 1):
        now[0] = second
        logger.warning("failed with %s", second)

    assert said == [
        "failed with 0",
        f"failed with {INTERVAL_SECONDS + 1} (2 similar messages suppressed)",
    ]


def test_places_are_limited_separately(heard) -> None:
    _, said, logger = heard

    logger.warning("failed")
    logger.error("given up")

    assert said == ["failed", "given up"]


def test_filter_is_added_once_and_only_to_opentelemetry() -> None:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
        OTLPMetricExporter,
    )

    class Ours(OTLPMetricExporter):
        """An exporter that somebody derived."""

    add_log_filter(RateLimitFilter, Ours)
    add_log_filter(RateLimitFilter, Ours)

    theirs = logging.getLogger(OTLPMetricExporter.__module__)
    assert sum(isinstance(each, RateLimitFilter) for each in theirs.filters) == 1
    assert logging.getLogger(Ours.__module__).filters == []
    remove_log_filters()
    assert theirs.filters == []

"""What repeats itself is heard seldom, and nothing else is."""

from __future__ import annotations

import logging

import pytest

from keylag_otel.seldom import SECONDS, Seldom, hear_all, hear_less


@pytest.fixture
def heard() -> tuple[list[int], list[str], logging.Logger]:
    """The time, what was said, and a logger that is heard seldom."""
    now, said = [0], []
    logger = logging.getLogger("opentelemetry.exporter.made_up")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger.addHandler(handler)
    logger.addFilter(Seldom(lambda: now[0]))
    yield now, said, logger
    logger.filters.clear()
    logger.handlers.clear()


def test_each_place_speaks_once_and_says_later_what_was_left_out(heard) -> None:
    now, said, logger = heard

    for second in (0, 1, 2, SECONDS + 1):
        now[0] = second
        logger.warning("failed with %s", second)

    assert said == [
        "failed with 0",
        f"failed with {SECONDS + 1} (2 more like it were left out)",
    ]


def test_different_places_do_not_silence_each_other(heard) -> None:
    _, said, logger = heard

    logger.warning("failed")
    logger.error("given up")

    assert said == ["failed", "given up"]


def test_only_opentelemetrys_own_loggers_are_quietened_and_only_once() -> None:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
        OTLPMetricExporter,
    )

    class Ours(OTLPMetricExporter):
        """An exporter that somebody derived."""

    hear_less(Seldom, Ours)
    hear_less(Seldom, Ours)

    theirs = logging.getLogger(OTLPMetricExporter.__module__)
    assert sum(isinstance(each, Seldom) for each in theirs.filters) == 1
    assert logging.getLogger(Ours.__module__).filters == []
    hear_all()
    assert theirs.filters == []

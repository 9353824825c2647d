"""Placeholders, metric names, and categories as matchers."""

import re

import pytest

from keylag_dashboards.categories import MATCHERS, TITLES
from keylag_dashboards.promql import expand, metric_names
from keylag_otel.model import CATEGORIES, CATEGORY_OF_CELL, CELLS


def test_expand_replaces_placeholders() -> None:
    query = expand('rate(x_total{MEMCACHED, a="b"}\n    [RATE])')

    assert query == (
        'rate(x_total{cluster=~"$cluster", region=~"$region", '
        'instance=~"$memcached", a="b"} [$__rate_interval])'
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("up", {"up"}),
        ('sum by (job, le) (rate(a_bucket{le="1"}[5m])) / b:c', {"a_bucket", "b:c"}),
        ("a * on (x) group_left (y) b offset 1d > 0.5", {"a", "b"}),
        ("a unless on () b and topk(15, c) or vector(0)", {"a", "b", "c"}),
        ('label_replace(a{x="}"}, "new", "$1", "old", "(.*)")', {"a"}),
    ],
)
def test_metric_names(query: str, names: set[str]) -> None:
    """Functions, labels, strings and numbers are not metrics."""
    assert metric_names(query) == names


def test_each_cell_matches_only_its_category() -> None:
    pattern = re.compile(r'keystone_operation!~"(.*)", keystone_phase=~"(.*)"')
    for cell, (phase, operation) in CELLS.items():
        choosing = []
        for category, matchers in MATCHERS.items():
            others, phases = pattern.fullmatch(matchers).groups()
            if re.fullmatch(phases, phase) and not re.fullmatch(others, operation):
                choosing.append(category)
        assert choosing == [CATEGORY_OF_CELL[cell]]


def test_every_category_has_a_title() -> None:
    """In the order of the model."""
    assert tuple(TITLES) == CATEGORIES

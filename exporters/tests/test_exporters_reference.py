"""docs/reference/exporters.md and the names of all metrics."""

import re
from pathlib import Path

from keylag_exporters import collector
from keylag_exporters.reference import render_page
from keylag_exporters.sources import load_source_types

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "exporters.md"
DECLARED = [
    *collector.METRICS,
    *(one for source in load_source_types() for one in source.metrics),
]


def test_exporters_reference_is_up_to_date():
    assert render_page() == PAGE.read_text()


def test_metric_names_are_unique_and_counters_end_in_total():
    names = [one.name for one in DECLARED]

    assert len(names) == len(set(names))
    for one in DECLARED:
        assert re.fullmatch(r"[a-z][a-zA-Z0-9_]*", one.name)
        assert one.name.endswith("_total") == (one.type == "counter")
        assert one.help.endswith(".")


def test_passwords_are_the_only_secret_options():
    secrets = [
        o.name for source in load_source_types() for o in source.options if o.secret
    ]

    assert secrets == ["password", "password", "password"]

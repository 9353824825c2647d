"""The reference says what the code declares; every name keeps the rules."""

import re
from pathlib import Path

from keylag_exporters import collector
from keylag_exporters.reference import page
from keylag_exporters.sources import kinds

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "exporters.md"
DECLARED = [*collector.METRICS, *(one for kind in kinds() for one in kind.metrics)]


def test_the_reference_is_current():
    assert page() == PAGE.read_text()


def test_names_are_unique_and_say_their_kind():
    names = [one.name for one in DECLARED]

    assert len(names) == len(set(names))
    for one in DECLARED:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", one.name)
        assert one.name.endswith("_total") == (one.kind == "counter")
        assert one.help.endswith(".")


def test_no_option_takes_a_secret_on_the_command_line():
    secrets = [o.name for kind in kinds() for o in kind.options if o.secret]

    assert secrets == ["password", "password"]

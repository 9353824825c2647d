"""The table of mutation scores, from what mutmut prints."""

from collections import Counter

import pytest

from keylag.state import CHECKOUT
from keylag_dev.mutation import PROJECTS, chosen, dotted, outcomes, row, score

RESULTS = """\
    keylag.experiment.sequence.x_reach__mutmut_1: killed
    keylag.experiment.sequence.xǁIntervalǁscaled__mutmut_2: no tests
    keylag_otel.seam.x__missing_parameters__mutmut_12: timeout
    keylag_otel.seam.x__missing_parameters__mutmut_13: survived
    keylag_otel.seam.x__missing_parameters__mutmut_14: killed
"""


def test_outcomes_are_counted_by_module() -> None:
    """Of functions and methods alike."""
    assert outcomes(RESULTS) == {
        "keylag.experiment.sequence": Counter({"killed": 1, "no tests": 1}),
        "keylag_otel.seam": Counter({"timeout": 1, "survived": 1, "killed": 1}),
    }


def test_a_mutant_that_no_test_calls_has_survived() -> None:
    """One that never ends has not."""
    found = Counter({"killed": 5, "timeout": 1, "survived": 1, "no tests": 1})

    assert score(found) == pytest.approx(0.75)
    assert row("m", found).split() == ["m", "8", "5", "2", "1", "75.0%"]


def test_every_module_and_test_of_the_table_is_there() -> None:
    """Also the folder that holds the module, under its importable name."""
    for folder, project in PROJECTS.items():
        for path in (*project.modules, *project.tests):
            assert (CHECKOUT / folder / path).is_file(), path
    assert dotted("src/keylag_otel/seams/dogpile.py") == "keylag_otel.seams.dogpile"
    assert dotted("keylag_bench/intervals.py") == "keylag_bench.intervals"


def test_modules_are_chosen_by_a_part_of_their_path() -> None:
    """Without a word, all of them."""
    assert chosen([]) == dict(PROJECTS)
    found = chosen(["slow_log/follow", "bench/"])
    assert list(found) == ["exporters", "bench"]
    assert found["exporters"].modules == ("src/keylag_exporters/slow_log/follow.py",)
    assert found["bench"] == PROJECTS["bench"]
    assert chosen(["nothing"]) == {}

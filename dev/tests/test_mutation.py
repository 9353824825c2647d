"""Mutation scores from the output of mutmut."""

from collections import Counter

import pytest

from keylag.paths import CHECKOUT
from keylag_dev.mutation import (
    PROJECTS,
    module_name,
    parse_outcomes,
    score,
    select_projects,
    table_row,
)

RESULTS = """\
    keylag.experiment.sequence.x_reach__mutmut_1: killed
    keylag.experiment.sequence.xǁIntervalǁscaled__mutmut_2: no tests
    keylag_otel.seam.x__missing_parameters__mutmut_12: timeout
    keylag_otel.seam.x__missing_parameters__mutmut_13: survived
    keylag_otel.seam.x__missing_parameters__mutmut_14: killed
"""


def test_outcomes_are_counted_by_module() -> None:
    assert parse_outcomes(RESULTS) == {
        "keylag.experiment.sequence": Counter({"killed": 1, "no tests": 1}),
        "keylag_otel.seam": Counter({"timeout": 1, "survived": 1, "killed": 1}),
    }


def test_untested_mutants_survive_and_timeouts_are_killed() -> None:
    found = Counter({"killed": 5, "timeout": 1, "survived": 1, "no tests": 1})

    assert score(found) == pytest.approx(0.75)
    assert table_row("m", found).split() == ["m", "8", "5", "2", "1", "75.0%"]


def test_modules_and_tests_of_all_projects_exist() -> None:
    for folder, project in PROJECTS.items():
        for path in (*project.modules, *project.tests):
            assert (CHECKOUT / folder / path).is_file(), path
    assert (
        module_name("src/keylag_otel/seams/dogpile.py") == "keylag_otel.seams.dogpile"
    )
    assert module_name("keylag_bench/intervals.py") == "keylag_bench.intervals"


def test_projects_are_selected_by_parts_of_module_paths() -> None:
    assert select_projects([]) == dict(PROJECTS)
    found = select_projects(["slow_log/follow", "bench/"])
    assert list(found) == ["exporters", "bench"]
    assert found["exporters"].modules == ("src/keylag_exporters/slow_log/follow.py",)
    assert found["bench"] == PROJECTS["bench"]
    assert select_projects(["nothing"]) == {}

"""The rules on windows of real servers with planted causes, as they were recorded.

A rule that changes is judged by all of them, in seconds.  `make test-diagnosis` and
`python -m keylag_dev.diagnosis_page` record them anew.
"""

from typing import Final

import pytest

from keylag.diagnosis.case import Case
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.ranking import diagnose
from keylag_dev.diagnosis_scores import answers
from keylag_dev.recorded_facts import RecordedWindow, keep, kept

WINDOWS: Final = {one.case: one for one in kept()}
WRONG: Final[frozenset[str]] = frozenset()
"""Cases that the rules do not tell yet; docs/diagnosis-score.md shows each."""


def named(window: RecordedWindow) -> list[str]:
    facts = window.facts
    diagnosis = diagnose(Case(facts, Expected.shipped(facts)))
    return [one.rule.id for one in diagnosis.findings]


@pytest.mark.parametrize("case", WINDOWS)
def test_the_cause_of_a_recorded_window_is_named(case: str) -> None:
    window = WINDOWS[case]

    assert answers(window.expected, named(window)) == (case not in WRONG)


def test_windows_have_every_kind_of_case() -> None:
    expected = [len(one.expected) for one in WINDOWS.values()]

    assert {0, 1, 2} <= set(expected)


def test_kept_windows_are_read_as_they_were(tmp_path) -> None:
    file = tmp_path / "data" / "windows.jsonl.gz"
    keep(WINDOWS.values(), file)

    assert {one.case: one for one in kept(file)} == WINDOWS

"""The rules on windows of real servers with planted causes, as they were recorded.

A rule that changes is judged by all of them, in seconds.  `make test-diagnosis` and
`python -m keylag_dev.diagnosis_page` record them anew.
"""

from typing import Final

import pytest

from keylag_dev.diagnosis_score import judge
from keylag_dev.diagnosis_scores import answers
from keylag_dev.recorded_facts import DATA, keep, kept

WINDOWS: Final = {
    f"{file.name}: {one.case}": one
    for file in sorted(DATA.glob("*-windows.jsonl.gz"))
    for one in kept(file)
}
WRONG: Final = frozenset(
    {
        "first-unseen-windows.jsonl.gz: C5 at 2000",
        "first-unseen-windows.jsonl.gz: A2 at 500",
        "first-unseen-windows.jsonl.gz: R3 at 2",
        "first-unseen-windows.jsonl.gz: D2:disk at 60",
        "first-unseen-windows.jsonl.gz: D3 at 100000",
        "first-unseen-windows.jsonl.gz: D7",
        "score-windows.jsonl.gz: C5",
    }
)
"""Cases that the rules do not tell yet; the page of the score shows the last one."""


@pytest.mark.parametrize("case", WINDOWS)
def test_the_cause_of_a_recorded_window_is_named(case: str) -> None:
    window = WINDOWS[case]

    named = judge(window.facts)["named"]

    assert answers(window.expected, named) == (case not in WRONG)


def test_windows_have_every_kind_of_case() -> None:
    expected = [len(one.expected) for one in WINDOWS.values()]

    assert {0, 1, 2} <= set(expected)


def test_kept_windows_are_read_as_they_were(tmp_path) -> None:
    file = tmp_path / "data" / "windows.jsonl.gz"
    keep(WINDOWS.values(), file)

    assert [*kept(file)] == [*WINDOWS.values()]

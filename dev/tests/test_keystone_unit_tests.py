"""Keystone's own tests: which there are, and how two runs of them differ."""

from pathlib import Path

from keylag_dev import keystone_unit_tests


def test_tests_that_come_to_another_outcome_are_told_apart() -> None:
    """One that is missing in one arm differs too."""
    without = {"same": "passed", "worse": "passed", "gone": "skipped"}
    outcomes = {"without": without, "with": {"same": "passed", "worse": "failed"}}

    lines = keystone_unit_tests.differences(outcomes)

    assert lines == [
        "gone: skipped without, None with Keylag",
        "worse: passed without, failed with Keylag",
    ]


def test_all_modules_of_keystones_own_tests_are_found(tmp_path: Path) -> None:
    """Wherever they lie; what is no test is none."""
    folder = tmp_path / "lib/python3.11/site-packages/keystone/tests/unit"
    for name in ("test_b.py", "core.py", "token/test_a.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()

    found = keystone_unit_tests.every_module(tmp_path / "bin" / "python")

    assert found == ["test_b", "token.test_a"]

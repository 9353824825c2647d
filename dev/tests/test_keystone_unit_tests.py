"""Modules and differences of Keystone's own tests."""

from pathlib import Path

from keylag_dev import keystone_unit_tests


def test_differences_list_changed_and_missing_tests() -> None:
    without = {"same": "passed", "worse": "passed", "gone": "skipped"}
    outcomes = {"without": without, "with": {"same": "passed", "worse": "failed"}}

    lines = keystone_unit_tests.differences(outcomes)

    assert lines == [
        "gone: skipped without, None with Keylag",
        "worse: passed without, failed with Keylag",
    ]


def test_list_modules_finds_nested_test_modules(tmp_path: Path) -> None:
    folder = tmp_path / "lib/python3.11/site-packages/keystone/tests/unit"
    for name in ("test_b.py", "core.py", "token/test_a.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()

    found = keystone_unit_tests.list_modules(tmp_path / "bin" / "python")

    assert found == ["test_b", "token.test_a"]

"""Copies of prepared data."""

from pathlib import Path

import pytest

from keylag.prepared import CopyError, Store, mark_whole


def test_a_copy_that_fails_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    """Whatever number of files failed, one is named."""
    kept = tmp_path / "store" / "name"
    kept.mkdir(parents=True)
    for number in range(9):
        (kept / f"gone-{number}").symlink_to("nowhere")
    mark_whole(kept, "name")

    with pytest.raises(CopyError) as caught:
        Store(tmp_path / "store").restore("name", tmp_path / "stack" / "data")

    assert str(caught.value).count("No such file or directory") == 1
    assert "Make room there, or choose another folder" in str(caught.value)
    assert list((tmp_path / "stack").iterdir()) == []

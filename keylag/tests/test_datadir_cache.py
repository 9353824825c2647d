"""The cache of data folders."""

from pathlib import Path

import pytest

from keylag.datadir_cache import DatadirCache, DatadirCopyError, mark_complete


def test_failed_copy_reports_one_reason_and_leaves_no_files(tmp_path: Path) -> None:
    """The error of shutil lists all files that failed."""
    copy = tmp_path / "store" / "name"
    copy.mkdir(parents=True)
    for number in range(9):
        (copy / f"gone-{number}").symlink_to("nowhere")
    mark_complete(copy, "name")

    with pytest.raises(DatadirCopyError) as caught:
        DatadirCache(tmp_path / "store").restore("name", tmp_path / "stack" / "data")

    assert str(caught.value).count("No such file or directory") == 1
    assert "Free some space there, or choose another folder" in str(caught.value)
    assert list((tmp_path / "stack").iterdir()) == []

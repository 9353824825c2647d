"""The raw samples: on the disk once they are said to be."""

import os
from pathlib import Path

import pytest
from fake_experiment import FakeExecutor, MakeRun, fake_rows

from keylag.experiment import samples
from keylag.experiment.run_folder import RunFolder, RunFolderError, RunState
from keylag.experiment.schedule import Round

ROUND = Round(0, ["a", "b", "c"], 1)
Synced = list[tuple[Path, int]]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Synced:
    """Return what is synced to the disk, with its size at that time."""
    found: Synced = []
    sync = os.fsync

    def noted(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        found.append((path, os.fstat(handle).st_size))
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    return found


def test_a_new_file_is_on_the_disk_with_its_folder(
    synced: Synced, tmp_path: Path
) -> None:
    """All of it, and then the folder, which does not list the file before."""
    path = tmp_path / "samples.csv"
    samples.append_rows(path, fake_rows(ROUND, "a"))

    assert [place for place, _ in synced] == [path, tmp_path]
    assert synced[0][1] == path.stat().st_size > 0


def test_rows_that_are_added_are_on_the_disk(synced: Synced, tmp_path: Path) -> None:
    """With one sync for all of a round: its folder lists the file already."""
    path = tmp_path / "samples.csv"
    samples.append_rows(path, [])
    header = path.stat().st_size
    synced.clear()
    samples.append_rows(path, fake_rows(ROUND, "b"))

    assert synced == [(path, path.stat().st_size)]
    assert path.stat().st_size > header
    assert list(samples.read_rows(path)) == fake_rows(ROUND, "b")


def test_samples_are_on_the_disk_before_the_journal_counts_them(
    synced: Synced, make_run: MakeRun
) -> None:
    """After a power failure the journal never knows of more than there is."""
    under_way = make_run("r", FakeExecutor())
    state = under_way.folder.load_state()
    synced.clear()
    under_way.folder.add_round(state, fake_rows(ROUND, "a"))

    assert [path.name for path, _ in synced] == ["samples.csv", ".run.json.new"]
    assert synced[0][1] == state.samples_size
    assert under_way.folder.load_state().samples_size == state.samples_size


def test_a_folder_that_has_lost_samples_is_refused(tmp_path: Path) -> None:
    """Zeros in place of what is missing would be samples that nobody took."""
    folder = RunFolder(tmp_path)
    samples.append_rows(folder.samples_path, fake_rows(ROUND, "a"))
    size = folder.samples_path.stat().st_size
    folder.truncate_samples(RunState(seed=1, samples_size=size))
    folder.truncate_samples(RunState(seed=1, samples_size=size - 3))

    with pytest.raises(RunFolderError, match=f"has {size - 3} bytes, but had {size} "):
        folder.truncate_samples(RunState(seed=1, samples_size=size))

    assert folder.samples_path.stat().st_size == size - 3

"""samples.csv: synced to the disk before run.json refers to it."""

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
    """Return the paths passed to fsync, with their sizes at that time."""
    found: Synced = []
    sync = os.fsync

    def record(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        found.append((path, os.fstat(handle).st_size))
        sync(handle)

    monkeypatch.setattr(os, "fsync", record)
    return found


def test_new_file_is_synced_and_then_its_folder(synced: Synced, tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    samples.append_rows(path, fake_rows(ROUND, "a"))

    assert [place for place, _ in synced] == [path, tmp_path]
    assert synced[0][1] == path.stat().st_size > 0


def test_appended_rows_are_synced_once(synced: Synced, tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    samples.append_rows(path, [])
    header = path.stat().st_size
    synced.clear()
    samples.append_rows(path, fake_rows(ROUND, "b"))

    assert synced == [(path, path.stat().st_size)]
    assert path.stat().st_size > header
    assert list(samples.read_rows(path)) == fake_rows(ROUND, "b")


def test_samples_are_synced_before_the_state_is_written(
    synced: Synced, make_run: MakeRun
) -> None:
    run_under_test = make_run("r", FakeExecutor())
    state = run_under_test.folder.load_state()
    synced.clear()
    run_under_test.folder.add_round(state, fake_rows(ROUND, "a"))

    assert [path.name for path, _ in synced] == ["samples.csv", ".run.json.new"]
    assert synced[0][1] == state.samples_size
    assert run_under_test.folder.load_state().samples_size == state.samples_size


def test_missing_samples_are_refused_on_resume(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    samples.append_rows(folder.samples_path, fake_rows(ROUND, "a"))
    size = folder.samples_path.stat().st_size
    folder.truncate_samples(RunState(seed=1, samples_size=size))
    folder.truncate_samples(RunState(seed=1, samples_size=size - 3))

    with pytest.raises(RunFolderError, match=f"has {size - 3} bytes, but had {size} "):
        folder.truncate_samples(RunState(seed=1, samples_size=size))

    assert folder.samples_path.stat().st_size == size - 3

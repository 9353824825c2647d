"""The laboratory of storage: its options, its figures, and a short real run."""

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from keylag.cli import main
from keylag.lab import mounts
from keylag.lab.iproute import LabError
from keylag.lab.storage import fio, layers
from keylag.lab.storage import lab as storage_lab
from keylag.lab.storage.calls import KINDS, measure
from keylag.lab.storage.lab import StorageLab
from keylag.lab.storage.options import StorageOptions
from keylag.tools.programs import STORAGE, missing_packages

DEVICES = ("/dev/fuse", "/dev/loop-control")
needs_storage = pytest.mark.skipif(
    os.geteuid() != 0
    or not all(Path(one).exists() for one in DEVICES)
    or bool(missing_packages(STORAGE)),
    reason=f"needs root, {' and '.join(DEVICES)}, and `keylag setup --with labs`",
)
DELAY_SECONDS = 0.02


def answer(**job: Any) -> str:
    """Return what fio prints, with a warning before it."""
    found = {"error": 0, "read": {}, "write": {}, "sync": {}, **job}
    return f"fio: a warning\n{json.dumps({'jobs': [found]})}"


def latency(mean: float, p99: float) -> dict[str, Any]:
    return {"mean": mean, "percentile": {"99.000000": p99}}


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Let fio print a text and end with a code; keep its command."""
    seen: dict[str, Any] = {"text": "", "code": 0, "error": ""}

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        seen["command"] = command
        text, error = seen["text"], seen["error"]
        return subprocess.CompletedProcess(command, seen["code"], text, error)

    monkeypatch.setattr(subprocess, "run", run)
    return seen


def test_flush_has_the_write_and_the_wait_for_the_disk(
    printed: dict[str, Any], tmp_path: Path
) -> None:
    printed["text"] = answer(
        write={"iops": 100.0, "clat_ns": latency(6e6, 7e6)},
        sync={"lat_ns": latency(4e6, 9e6)},
    )

    found = fio.flush(tmp_path)

    assert found.seconds == pytest.approx(0.01)
    assert found.sync_p99_seconds == pytest.approx(0.009)
    assert "--fdatasync=1" in printed["command"]


def test_matrix_reads_and_writes_with_each_block_and_number_of_jobs(
    printed: dict[str, Any], tmp_path: Path
) -> None:
    side = {"iops": 500.0, "clat_ns": latency(2e6, 3e6)}
    printed["text"] = answer(read=side, write={**side, "iops": 400.0})

    found = list(fio.matrix(tmp_path, prefix=["in-group"], blocks=["4k"], jobs=[1, 8]))

    assert [(one.access, one.jobs, one.per_second) for one in found] == [
        ("randread", 1, 500.0),
        ("randread", 8, 500.0),
        ("randwrite", 1, 400.0),
        ("randwrite", 8, 400.0),
    ]
    assert printed["command"][:2] == ["in-group", "fio"]


def test_fio_that_ends_without_figures_is_an_error(
    printed: dict[str, Any], tmp_path: Path
) -> None:
    printed.update(code=1, error="fio: out of memory")

    with pytest.raises(LabError, match="out of memory"):
        fio.flush(tmp_path)


def test_fio_that_cannot_write_is_an_error(
    printed: dict[str, Any], tmp_path: Path
) -> None:
    printed["text"] = answer(error=28)

    with pytest.raises(LabError, match="No space left"):
        fio.flush(tmp_path)


def test_file_of_fio_has_blocks_on_the_disk_and_is_kept(tmp_path: Path) -> None:
    fio.make_file(tmp_path)
    path = tmp_path / fio.FILE
    begun = path.stat()
    fio.make_file(tmp_path)

    assert begun.st_blocks * 512 >= fio.SIZE_BYTES
    assert path.stat().st_mtime_ns == begun.st_mtime_ns


def test_limited_writes_are_those_of_one_device() -> None:
    StorageOptions([0.0], writes_per_second=20).check()

    with pytest.raises(LabError, match="Choose one device, or no limit"):
        StorageOptions([0.0, 0.02], writes_per_second=20).check()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (StorageOptions(), "own disk, flush 1"),
        (StorageOptions([0.005], flush=2), "device with 5 ms, flush 2"),
        (StorageOptions([0.0, 0.02]), "devices with 0 ms and 20 ms, flush 1"),
        (StorageOptions(writes_per_second=20), "own disk, 20 writes/s, flush 1"),
    ],
)
def test_options_in_words(options: StorageOptions, text: str) -> None:
    assert str(options) == text


def test_options_stay_in_the_folder(tmp_path: Path) -> None:
    options = StorageOptions([0.0, 0.02], 20, 2)
    options.write(tmp_path)

    assert StorageOptions.read(tmp_path) == options


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StorageLab:
    """A laboratory after `up`, without servers; files have the first data."""
    lab = StorageLab(tmp_path)
    for folder in (lab._first_data, lab._database):
        folder.mkdir(parents=True)
        (folder / "rows").write_text("first")
    stack = SimpleNamespace(
        folder=lab.stack_folder, options=None, restart=lambda *_, **__: None
    )
    monkeypatch.setattr(StorageLab, "_stack", lambda *_: stack)
    monkeypatch.setattr(StorageLab, "_remove_device", lambda _: None)
    monkeypatch.setattr(storage_lab, "stop_services", lambda *_: None)
    monkeypatch.setattr(fio, "make_file", lambda _: None)
    StorageOptions().write(lab.folder)
    return lab


def test_each_start_has_the_data_of_the_first_one(started: StorageLab) -> None:
    (started._database / "rows").write_text("measured on")
    (started._database / "more").touch()

    started.change(StorageOptions(flush=2))

    assert [one.name for one in started._database.iterdir()] == ["rows"]
    assert (started._database / "rows").read_text() == "first"
    assert started.options().flush == 2


def test_a_change_that_fails_leaves_no_saved_options(
    started: StorageLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        message = "nbdfuse ended"
        raise LabError(message)

    monkeypatch.setattr(StorageLab, "_place", fail)
    with pytest.raises(LabError, match="nbdfuse ended"):
        started.change(StorageOptions([0.005]))
    with pytest.raises(LabError, match="keylag lab storage up"):
        started.options()


def test_nothing_runs_before_up(tmp_path: Path) -> None:
    ended = CliRunner().invoke(
        main, ["lab", "storage", "measure", f"--state={tmp_path}"]
    )

    assert ended.exit_code == 1
    assert "keylag lab storage up" in ended.output


def test_a_third_device_is_refused() -> None:
    delays = ["--delay=1ms"] * 3
    ended = CliRunner().invoke(main, ["lab", "storage", "up", *delays])

    assert ended.exit_code == 2
    assert "at most 2 times" in ended.output


def test_layers_have_self_times_and_folded_stacks() -> None:
    found = list(layers._layers({"file system": 0.006, "delay": 0.005, "file": 0.001}))

    assert [one.name for one in found] == ["file system", "delay", "file"]
    assert sum(one.self_seconds for one in found) == pytest.approx(0.006)
    assert layers.folded(found) == (
        "file system 1000\nfile system;delay 4000\nfile system;delay;file 1000\n"
    )


def test_layers_need_one_device(tmp_path: Path) -> None:
    StorageOptions().write(tmp_path)

    with pytest.raises(LabError, match="--delay 5ms"):
        layers.measure(StorageLab(tmp_path))


@needs_storage
def test_a_device_and_its_file_system_are_released(tmp_path: Path) -> None:
    image, target = tmp_path / "image", tmp_path / "mounted"
    mounts.make_image(image, 8 * 1024**2)
    device = mounts.attach(image)
    mounts.make_ext4(device)
    mounts.mount([device], target)
    assert target.is_mount()

    mounts.release(tmp_path)

    assert not target.is_mount()
    attached = subprocess.run(
        ["losetup", "--associated", image], capture_output=True, text=True, check=True
    )
    assert not attached.stdout


@needs_storage
@pytest.mark.matrix
def test_commits_wait_for_the_device_and_validations_do_not(tmp_path: Path) -> None:
    lab = StorageLab(tmp_path)
    try:
        lab.up(StorageOptions(), print)
        usual = measure(lab.stack_folder, 5)
        lab.change(StorageOptions([0.0, DELAY_SECONDS]))
        flushed = fio.flush(lab.device, seconds=1)
        slow = measure(lab.stack_folder, 5)
    finally:
        lab.down()

    assert usual.keys() == slow.keys() == KINDS.keys()
    assert not any(one.failed for one in (*usual.values(), *slow.values()))
    assert flushed.seconds >= DELAY_SECONDS
    revoked = "DELETE token"
    assert slow[revoked].sql_seconds >= usual[revoked].sql_seconds + DELAY_SECONDS
    assert slow["GET token"].sql_seconds < DELAY_SECONDS
    assert not lab.device.is_mount()

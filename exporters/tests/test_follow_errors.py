"""The follower survives errors and loses no readable event."""

# ruff: noqa: PLR0913, PLR0917 -- a fixture is an argument

import gzip
import logging
import os
import shutil
from pathlib import Path

import pytest
from exporter_helpers import EVENT
from log_writer import ALL_BYTES, LogWriter, count_events

from keylag_exporters.model import UnreachableError
from keylag_exporters.slow_log import event_splitter, position
from keylag_exporters.slow_log.aggregator import StatementAggregator
from keylag_exporters.slow_log.follow import GRACE_SECONDS, Follower, TailedFile
from keylag_exporters.slow_log.position import Position

SIZE = len(EVENT.replace(b"SELECT 1", b"SELECT 'event 0'"))


@pytest.fixture
def rotated(log):
    return log.with_name("slow.log.1")


@pytest.fixture
def make_follower(log, writer, clock):
    return lambda: Follower(log, StatementAggregator(), clock)


@pytest.fixture
def follower(make_follower):
    made = make_follower()
    made.open(at_end=False)
    made.poll(ALL_BYTES)
    return made


@pytest.fixture
def unreadable_files(monkeypatch):
    """A set of paths that cannot be opened; root ignores file permissions."""
    paths = set()
    opened = position._open_nonblocking

    def refuse(name, flags):
        if name in map(str, paths):
            raise PermissionError(13, "Permission denied", name)
        return opened(name, flags)

    monkeypatch.setattr(position, "_open_nonblocking", refuse)
    return paths


def assert_poll_fails(follower, words="cannot read"):
    with pytest.raises(UnreachableError, match=words):
        follower.poll(ALL_BYTES)


def test_unreadable_new_log_is_retried(
    follower, writer, log, rotated, clock, unreadable_files
):
    writer.write(5)
    assert count_events(follower) == 5
    log.rename(rotated)
    log.touch()
    unreadable_files.add(log)
    for _ in range(4):
        assert_poll_fails(follower, f"cannot read {log}: Permission denied")
        clock.now += GRACE_SECONDS
    writer.write(3, rotated)  # the server keeps writing to it
    assert_poll_fails(follower)
    assert (follower.read_bytes, follower.read_errors) == (8 * SIZE, 5)
    writer.write(2)
    assert follower.unread_bytes == 2 * SIZE
    assert follower.file_changes["renamed"] == 0
    unreadable_files.clear()

    assert count_events(follower) == 10
    assert follower.file_changes == {"renamed": 1, "truncated": 0}
    assert (
        follower.unread_bytes,
        follower.lost_files,
        follower._aggregator.skipped_events,
    ) == (0, 0, 0)
    clock.now += GRACE_SECONDS
    assert count_events(follower) == 10
    assert [one.offset for one in follower.positions] == [2 * SIZE]


@pytest.mark.parametrize("make_obstacle", [os.mkdir, os.mkfifo], ids=["folder", "fifo"])
@pytest.mark.timeout(20)
def test_directory_or_fifo_in_place_of_the_log_is_retried(
    make_obstacle, follower, writer, log, rotated
):
    writer.write(2)
    log.rename(rotated)
    make_obstacle(log)
    assert_poll_fails(follower, "directory|not a regular file")
    log.rmdir() if log.is_dir() else log.unlink()
    writer.write(1)

    assert count_events(follower) == 3


def test_device_is_rejected(follower, log):
    log.unlink()
    log.symlink_to("/dev/null")

    assert_poll_fails(follower, "not a regular file")


def test_log_replaced_by_a_symlink_is_followed(follower, writer, log, tmp_path):
    writer.write(2)
    other = tmp_path / "elsewhere"
    writer.write(3, other)
    log.unlink()
    log.symlink_to(other)
    assert count_events(follower) == 5
    writer.write(1)
    log.unlink()
    log.symlink_to(tmp_path / "nowhere")
    writer.write(1, other)

    assert count_events(follower) == 7


def test_rotated_log_is_read_before_compression(follower, writer, log, rotated):
    writer.write(2)
    count_events(follower)
    log.rename(rotated)
    writer.write(3, rotated)
    rotated.with_name("slow.log.1.gz").write_bytes(gzip.compress(rotated.read_bytes()))
    rotated.unlink()
    writer.write(1)

    assert count_events(follower) == 6
    assert follower.lost_files == 0


def test_recreated_log_with_the_same_inode_is_read(follower, writer, log):
    for _ in range(5):
        writer.write(3)
        assert count_events(follower) == writer.count
        log.unlink()
        log.touch()


def test_shrunk_log_is_read_from_its_start(follower, writer, log):
    writer.write(6)
    assert count_events(follower) == 6
    os.truncate(log, 2 * SIZE)

    assert count_events(follower) == 8
    assert follower.file_changes["truncated"] == 1


def test_hole_after_truncation_hides_no_event(follower, writer, log):
    """A server without O_APPEND leaves a hole in a truncated log."""
    writer.write(5)
    assert count_events(follower) == 5
    size = log.stat().st_size
    os.truncate(log, 0)
    with log.open("r+b") as file:
        file.seek(size)
        file.write(writer.events(3))

    assert count_events(follower) == 8
    assert follower._aggregator.skipped_events == 0


def test_overlong_event_is_discarded_and_counted(follower, writer, log, monkeypatch):
    monkeypatch.setattr(event_splitter, "MAX_EVENT_BYTES", 200_000)
    with log.open("ab") as file:
        file.write(EVENT[:-10] + b"x" * 1_000_000)
    follower.poll(ALL_BYTES)
    assert follower._current.splitter.buffered_bytes < 200_000
    with log.open("ab") as file:
        file.write(b";\n")
    writer.write(3)

    assert count_events(follower) == 3
    assert follower._aggregator.skipped_events == 1


def copy_and_cut(log, rotated):
    shutil.copy(log, rotated)
    log.write_bytes(b"")


def test_unreadable_copy_is_retried(
    follower, writer, log, rotated, clock, unreadable_files
):
    writer.write(5)
    count_events(follower)
    writer.write(3)
    copy_and_cut(log, rotated)
    unreadable_files.add(rotated)
    writer.write(2)
    assert count_events(follower) == 7
    assert (follower.read_errors, follower.lost_files) == (2, 0)
    clock.now += GRACE_SECONDS - 1
    assert count_events(follower) == 7
    assert [one.offset for one in follower.positions] == [5 * SIZE, 2 * SIZE]
    unreadable_files.clear()

    assert count_events(follower) == 10
    assert (follower.lost_files, follower._aggregator.skipped_events) == (0, 0)
    assert follower.file_changes["truncated"] == 1


def test_copy_is_given_up_after_the_grace_period(
    follower, writer, log, rotated, clock, unreadable_files, caplog
):
    writer.write(5)
    follower.poll(ALL_BYTES)  # the last event is buffered
    copy_and_cut(log, rotated)
    unreadable_files.add(rotated)
    assert count_events(follower) == 4
    clock.now += GRACE_SECONDS

    assert count_events(follower) == 5
    assert follower.lost_files == 1
    assert caplog.messages == [f"{log}: bytes written after the last poll are lost"]
    assert count_events(follower) == 5


def test_truncation_without_a_copy_counts_as_a_lost_file(follower, writer, log):
    writer.write(2)
    count_events(follower)
    log.write_bytes(b"")

    assert count_events(follower) == 2
    assert (follower.lost_files, follower.read_errors) == (1, 0)


def test_file_is_reopened_at_its_position_after_a_read_error(
    follower, writer, log, monkeypatch
):
    writer.write(4)
    count_events(follower)
    with log.open("ab") as file:
        half = writer.events(1)
        file.write(half[:30])
    count_events(follower)
    broken, read = [True], TailedFile.read

    def stale(tail, *args):
        if broken:
            broken.clear()
            raise OSError(116, "Stale file handle")
        return read(tail, *args)

    monkeypatch.setattr(TailedFile, "read", stale)
    assert_poll_fails(follower, f"cannot read {log}: Stale file handle")
    assert follower._current is None
    with log.open("ab") as file:
        file.write(half[30:])
    writer.write(1)

    assert count_events(follower) == 6
    assert (
        follower.read_errors,
        follower.lost_files,
        follower._aggregator.skipped_events,
    ) == (1, 0, 0)


def test_renamed_file_with_read_errors_is_given_up_after_the_grace_period(
    follower, writer, log, rotated, clock, monkeypatch
):
    writer.write(4)
    count_events(follower)
    log.rename(rotated)
    log.touch()
    count_events(follower)
    first, read = follower._rotated[0], TailedFile.read

    def stale(tail, *args):
        if tail is first:
            raise OSError(5, "Input/output error")
        return read(tail, *args)

    monkeypatch.setattr(TailedFile, "read", stale)
    writer.write(2)
    assert count_events(follower) == 6
    assert (follower.read_errors, follower.lost_files) == (3, 0)
    clock.now += GRACE_SECONDS
    writer.write(1)

    assert count_events(follower) == 7
    assert (follower.read_errors, follower.lost_files, follower._rotated) == (4, 1, [])


def test_start_at_end_uses_the_size_at_start_time(
    make_follower, writer, log, unreadable_files
):
    writer.write(3)
    unreadable_files.add(log)
    made = make_follower()
    made.open(at_end=True)
    writer.write(2)
    assert_poll_fails(made)
    unreadable_files.clear()

    assert count_events(made) == 2
    assert made.start_place == "end"


def test_missing_log_is_read_from_its_start_once_created(log, clock):
    made = Follower(log, StatementAggregator(), clock)
    made.open(at_end=True)
    assert_poll_fails(made, "No such file")
    LogWriter(log).write(2)

    assert (count_events(made), made.start_place) == (2, "start")


@pytest.fixture
def saved_positions(follower, writer):
    """The positions of a closed follower that has counted five events."""
    writer.write(5)
    assert count_events(follower) == 5
    positions = follower.positions
    follower.close()
    return positions


def test_restart_retries_an_unreadable_log(
    saved_positions, make_follower, writer, log, clock, unreadable_files
):
    writer.write(2)
    unreadable_files.add(log)
    made = make_follower()
    made.resume(saved_positions)
    for _ in range(3):
        assert_poll_fails(made, f"cannot read {log}: Permission denied")
        assert made.positions == saved_positions
        clock.now += GRACE_SECONDS
    unreadable_files.clear()

    assert count_events(made) == 2
    assert (made.start_place, made.read_errors, made.lost_files) == ("saved", 3, 0)


def test_restart_retries_a_missing_folder(saved_positions, make_follower, log, writer):
    folder = log.parent.rename(log.parent.with_name("unmounted"))
    made = make_follower()
    made.resume(saved_positions)
    assert_poll_fails(made, "No such file")
    folder.rename(log.parent)
    writer.write(1)

    assert count_events(made) == 1


def test_restart_retries_a_missing_log(saved_positions, make_follower, log, writer):
    away = log.rename(log.with_name("hidden"))
    made = make_follower()
    made.resume(saved_positions)
    assert_poll_fails(made, f"cannot read {log}: No such file")
    away.rename(log)
    writer.write(1)

    assert count_events(made) == 1
    assert made.lost_files == 0


def test_restart_retries_an_unreadable_rotated_file(
    saved_positions, make_follower, writer, log, rotated, clock, unreadable_files
):
    writer.write(2)
    rotated_twice = log.rename(rotated).rename(log.with_name("slow.log.2"))
    writer.write(3, rotated)
    writer.write(1)
    unreadable_files.update((rotated, rotated_twice))
    made = make_follower()
    made.resume(saved_positions)
    assert_poll_fails(made, "slow.log.[12]: Permission denied")
    unreadable_files.remove(rotated_twice)
    clock.now += GRACE_SECONDS - 1
    assert_poll_fails(made, "slow.log.1: Permission denied")
    assert (made._rotated, made._current) == ([], None)
    unreadable_files.clear()

    assert count_events(made) == 6
    assert (made.start_place, made.lost_files) == ("saved", 0)


def test_restart_gives_up_a_rotated_file_after_the_grace_period(
    saved_positions,
    make_follower,
    writer,
    log,
    rotated,
    clock,
    unreadable_files,
    caplog,
):
    writer.write(2)
    rotated_twice = log.rename(rotated).rename(log.with_name("slow.log.2"))
    writer.write(3, rotated)
    writer.write(1)
    unreadable_files.add(rotated)
    made = make_follower()
    made.resume(saved_positions)
    assert_poll_fails(made)
    clock.now += GRACE_SECONDS

    assert rotated_twice.exists()
    assert count_events(made) == 3
    assert made.lost_files == 1
    assert caplog.messages == [f"{log}: giving up {rotated}: Permission denied"]


def test_lost_position_is_logged_and_the_log_read_from_its_start(
    saved_positions, make_follower, writer, log, caplog
):
    log.unlink()
    writer.write(3)
    made = make_follower()
    made.resume(saved_positions)

    assert count_events(made) == 3
    assert (made.start_place, made.lost_files) == ("start", 1)
    assert caplog.messages == [
        f"{log}: no file matches the saved position, starting at the log's beginning"
    ]


def test_position_in_an_empty_log_is_matched_by_inode(
    follower, make_follower, writer, log, rotated
):
    positions = follower.positions
    assert [(one.offset, one.inode) for one in positions] == [(0, log.stat().st_ino)]
    follower.close()
    writer.write(2)
    log.rename(rotated)
    writer.write(1)
    made = make_follower()
    made.resume(positions)

    assert count_events(made) == 3
    assert made.lost_files == 0


def test_resumed_renamed_file_is_read_during_the_grace_period(
    saved_positions, make_follower, writer, log, rotated, clock
):
    log.rename(rotated)
    log.touch()
    made = make_follower()
    made.resume(saved_positions)
    assert count_events(made) == 0
    clock.now += GRACE_SECONDS - 1
    writer.write(1, rotated)
    assert count_events(made) == 1
    clock.now += GRACE_SECONDS
    count_events(made)

    assert made._rotated == []


def test_renames_are_logged(follower, writer, log, rotated, caplog):
    caplog.set_level(logging.INFO)
    writer.write(1)
    count_events(follower)
    log.rename(rotated)
    writer.write(1)
    count_events(follower)
    copy_and_cut(log, rotated)
    count_events(follower)

    assert caplog.messages == [
        f"{log} was renamed, following the new file",
        f"{log} was truncated, restarting at its beginning",
    ]


def test_poll_respects_its_byte_limit(follower, writer, log):
    writer.write(3000)
    size = log.stat().st_size

    assert follower.poll(1 << 17) == 1 << 17
    assert follower.unread_bytes == size - (1 << 17)
    assert follower.poll(1) == 1 << 16
    assert follower.read_bytes == 3 << 16
    assert follower.poll(ALL_BYTES) == size - (3 << 16)
    assert (follower.poll(ALL_BYTES), follower.unread_bytes) == (0, 0)


def test_position_matches_by_checksum_or_inode(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 2000)
    with file.open("rb") as opened:
        place = Position.at(opened, 1500)
        assert place.matches(opened)
        assert Position(1500, place.checksum).matches(opened)
        assert not Position(1499, "0").matches(opened)
        assert not Position(2001, place.checksum).matches(opened)
        assert Position(1500, "", place.inode).matches(opened)
        assert not Position(1500, "", place.inode + 1).matches(opened)
        assert not Position(0, place.checksum, place.inode + 1).matches(opened)
        assert Position(0, place.checksum).matches(opened)


@pytest.fixture
def descriptors():
    """A function that returns the number of open files of this process."""
    return lambda: len(list(Path("/proc/self/fd").iterdir()))


def test_files_that_are_no_longer_read_are_closed(
    follower, writer, log, rotated, clock, descriptors
):
    writer.write(1)
    count_events(follower)
    before = descriptors()
    for _ in range(3):
        log.rename(rotated)
        writer.write(1)
        count_events(follower)
        clock.now += GRACE_SECONDS
        count_events(follower)
    assert descriptors() == before
    follower.close()

    assert descriptors() == before - 1
    assert follower._open_files == []


def test_failed_resume_leaves_no_file_open(
    saved_positions, make_follower, writer, log, rotated, unreadable_files, descriptors
):
    log.rename(rotated)
    writer.write(1)
    unreadable_files.add(log)
    made = make_follower()
    made.resume([Position(2 * SIZE, "", rotated.stat().st_ino), *saved_positions])
    before = descriptors()
    for _ in range(3):
        assert_poll_fails(made, f"cannot read {log}: Permission denied")

    assert descriptors() == before


def test_file_is_closed_after_a_read_error(follower, writer, monkeypatch, descriptors):
    writer.write(1)
    count_events(follower)
    before = descriptors()

    def stale(*_):
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(TailedFile, "read", stale)
    assert_poll_fails(follower, "Stale file handle")

    assert descriptors() == before - 1


def test_rejected_device_is_closed(follower, log, descriptors):
    log.unlink()
    log.symlink_to("/dev/null")
    before = descriptors()
    assert_poll_fails(follower)

    assert descriptors() == before

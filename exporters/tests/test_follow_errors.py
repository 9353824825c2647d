"""No error ends the following of a log, and no event that can be read is lost."""

# ruff: noqa: PLR0913, PLR0917 -- a fixture is an argument

import gzip
import logging
import os
import shutil
from pathlib import Path

import pytest
from exporter_helpers import EVENT
from followed_log import MOST, Writer, counted

from keylag_exporters.model import UnreachableError
from keylag_exporters.slow_log import position, stream
from keylag_exporters.slow_log.digest import Digest
from keylag_exporters.slow_log.follow import GRACE_SECONDS, Follower, Tail
from keylag_exporters.slow_log.position import Position

SIZE = len(EVENT.replace(b"SELECT 1", b"SELECT 'event 0'"))


@pytest.fixture
def old(log):
    return log.with_name("slow.log.1")


@pytest.fixture
def make(log, writer, clock):
    return lambda: Follower(log, Digest(), clock)


@pytest.fixture
def follower(make):
    made = make()
    made.open(at_end=False)
    made.poll(MOST)
    return made


@pytest.fixture
def forbidden(monkeypatch):
    """Files that may not be opened: a set to change. Root may open everything."""
    paths = set()
    opened = position._without_waiting

    def refuse(name, flags):
        if name in map(str, paths):
            raise PermissionError(13, "Permission denied", name)
        return opened(name, flags)

    monkeypatch.setattr(position, "_without_waiting", refuse)
    return paths


def fails(follower, words="cannot read"):
    with pytest.raises(UnreachableError, match=words):
        follower.poll(MOST)


def test_a_new_log_that_cannot_be_opened_at_once_is_tried_again(
    follower, writer, log, old, clock, forbidden
):
    writer.write(5)
    assert counted(follower) == 5
    log.rename(old)
    log.touch()
    forbidden.add(log)
    for _ in range(4):
        fails(follower, f"cannot read {log}: Permission denied")
        clock.now += GRACE_SECONDS
    writer.write(3, old)  # the server has not let go of it
    fails(follower)
    assert (follower.read_bytes, follower.errors) == (8 * SIZE, 5)
    writer.write(2)
    assert follower.behind == 2 * SIZE
    assert follower.changes["renamed"] == 0
    forbidden.clear()

    assert counted(follower) == 10
    assert follower.changes == {"renamed": 1, "truncated": 0}
    assert (follower.behind, follower.lost, follower._digest.skipped) == (0, 0, 0)
    clock.now += GRACE_SECONDS
    assert counted(follower) == 10
    assert [one.offset for one in follower.positions] == [2 * SIZE]


@pytest.mark.parametrize("make_obstacle", [os.mkdir, os.mkfifo], ids=["folder", "fifo"])
@pytest.mark.timeout(20)
def test_what_is_no_file_is_waited_out(make_obstacle, follower, writer, log, old):
    writer.write(2)
    log.rename(old)
    make_obstacle(log)
    fails(follower, "directory|not a regular file")
    log.rmdir() if log.is_dir() else log.unlink()
    writer.write(1)

    assert counted(follower) == 3


def test_a_device_is_no_log(follower, log):
    log.unlink()
    log.symlink_to("/dev/null")

    fails(follower, "not a regular file")


def test_a_log_may_become_a_link_to_another_file(follower, writer, log, tmp_path):
    writer.write(2)
    other = tmp_path / "elsewhere"
    writer.write(3, other)
    log.unlink()
    log.symlink_to(other)
    assert counted(follower) == 5
    writer.write(1)
    log.unlink()
    log.symlink_to(tmp_path / "nowhere")
    writer.write(1, other)

    assert counted(follower) == 7


def test_a_compressed_log_was_read_before(follower, writer, log, old):
    writer.write(2)
    counted(follower)
    log.rename(old)
    writer.write(3, old)
    old.with_name("slow.log.1.gz").write_bytes(gzip.compress(old.read_bytes()))
    old.unlink()
    writer.write(1)

    assert counted(follower) == 6
    assert follower.lost == 0


def test_a_removed_log_may_come_again_with_the_same_inode(follower, writer, log):
    for _ in range(5):
        writer.write(3)
        assert counted(follower) == writer.count
        log.unlink()
        log.touch()


def test_a_log_that_shrinks_is_read_from_its_start(follower, writer, log):
    writer.write(6)
    assert counted(follower) == 6
    os.truncate(log, 2 * SIZE)

    assert counted(follower) == 8
    assert follower.changes["truncated"] == 1


def test_zeros_where_a_log_was_cut_hide_no_event(follower, writer, log):
    """A server that does not append leaves a hole in a log that is cut."""
    writer.write(5)
    assert counted(follower) == 5
    size = log.stat().st_size
    os.truncate(log, 0)
    with log.open("r+b") as file:
        file.seek(size)
        file.write(writer.events(3))

    assert counted(follower) == 8
    assert follower._digest.skipped == 0


def test_an_endless_line_is_dropped_and_counted(follower, writer, log, monkeypatch):
    monkeypatch.setattr(stream, "MAX_EVENT_BYTES", 200_000)
    with log.open("ab") as file:
        file.write(EVENT[:-10] + b"x" * 1_000_000)
    follower.poll(MOST)
    assert follower._now.stream.held < 200_000
    with log.open("ab") as file:
        file.write(b";\n")
    writer.write(3)

    assert counted(follower) == 3
    assert follower._digest.skipped == 1


def copy_and_cut(log, old):
    shutil.copy(log, old)
    log.write_bytes(b"")


def test_a_copy_that_cannot_be_opened_at_once_is_tried_again(
    follower, writer, log, old, clock, forbidden
):
    writer.write(5)
    counted(follower)
    writer.write(3)
    copy_and_cut(log, old)
    forbidden.add(old)
    writer.write(2)
    assert counted(follower) == 7
    assert (follower.errors, follower.lost) == (2, 0)
    clock.now += GRACE_SECONDS - 1
    assert counted(follower) == 7
    assert [one.offset for one in follower.positions] == [5 * SIZE, 2 * SIZE]
    forbidden.clear()

    assert counted(follower) == 10
    assert (follower.lost, follower._digest.skipped) == (0, 0)
    assert follower.changes["truncated"] == 1


def test_a_copy_that_stays_unreadable_is_given_up_and_counted(
    follower, writer, log, old, clock, forbidden, caplog
):
    writer.write(5)
    follower.poll(MOST)  # the last event is held
    copy_and_cut(log, old)
    forbidden.add(old)
    assert counted(follower) == 4
    clock.now += GRACE_SECONDS

    assert counted(follower) == 5
    assert follower.lost == 1
    assert caplog.messages == [
        f"{log}: what was written after the last look at it is gone"
    ]
    assert counted(follower) == 5


def test_a_log_that_was_cut_without_a_copy_is_counted_as_lost(follower, writer, log):
    writer.write(2)
    counted(follower)
    log.write_bytes(b"")

    assert counted(follower) == 2
    assert (follower.lost, follower.errors) == (1, 0)


def test_a_file_that_breaks_is_opened_again_where_it_was(
    follower, writer, log, monkeypatch
):
    writer.write(4)
    counted(follower)
    with log.open("ab") as file:
        half = writer.events(1)
        file.write(half[:30])
    counted(follower)
    broken, read = [True], Tail.read

    def stale(tail, *args):
        if broken:
            broken.clear()
            raise OSError(116, "Stale file handle")
        return read(tail, *args)

    monkeypatch.setattr(Tail, "read", stale)
    fails(follower, f"cannot read {log}: Stale file handle")
    assert follower._now is None
    with log.open("ab") as file:
        file.write(half[30:])
    writer.write(1)

    assert counted(follower) == 6
    assert (follower.errors, follower.lost, follower._digest.skipped) == (1, 0, 0)


def test_a_renamed_file_that_breaks_is_given_up_after_a_while(
    follower, writer, log, old, clock, monkeypatch
):
    writer.write(4)
    counted(follower)
    log.rename(old)
    log.touch()
    counted(follower)
    first, read = follower._old[0], Tail.read

    def stale(tail, *args):
        if tail is first:
            raise OSError(5, "Input/output error")
        return read(tail, *args)

    monkeypatch.setattr(Tail, "read", stale)
    writer.write(2)
    assert counted(follower) == 6
    assert (follower.errors, follower.lost) == (3, 0)
    clock.now += GRACE_SECONDS
    writer.write(1)

    assert counted(follower) == 7
    assert (follower.errors, follower.lost, follower._old) == (4, 1, [])


def test_a_start_at_the_end_is_where_the_end_was_at_the_start(
    make, writer, log, forbidden
):
    writer.write(3)
    forbidden.add(log)
    made = make()
    made.open(at_end=True)
    writer.write(2)
    fails(made)
    forbidden.clear()

    assert counted(made) == 2
    assert made.place == "end"


def test_a_log_that_is_not_there_at_the_start_is_read_from_its_start(log, clock):
    made = Follower(log, Digest(), clock)
    made.open(at_end=True)
    fails(made, "No such file")
    Writer(log).write(2)

    assert (counted(made), made.place) == (2, "start")


@pytest.fixture
def stopped(follower, writer):
    """The positions of a follower that has counted five events."""
    writer.write(5)
    assert counted(follower) == 5
    positions = follower.positions
    follower.close()
    return positions


def test_a_restart_waits_for_a_log_that_cannot_be_opened(
    stopped, make, writer, log, clock, forbidden
):
    writer.write(2)
    forbidden.add(log)
    made = make()
    made.resume(stopped)
    for _ in range(3):
        fails(made, f"cannot read {log}: Permission denied")
        assert made.positions == stopped
        clock.now += GRACE_SECONDS
    forbidden.clear()

    assert counted(made) == 2
    assert (made.place, made.errors, made.lost) == ("saved", 3, 0)


def test_a_restart_waits_for_a_folder_that_is_not_there(stopped, make, log, writer):
    folder = log.parent.rename(log.parent.with_name("unmounted"))
    made = make()
    made.resume(stopped)
    fails(made, "No such file")
    folder.rename(log.parent)
    writer.write(1)

    assert counted(made) == 1


def test_a_restart_waits_for_a_log_that_is_not_there(stopped, make, log, writer):
    away = log.rename(log.with_name("hidden"))
    made = make()
    made.resume(stopped)
    fails(made, f"cannot read {log}: No such file")
    away.rename(log)
    writer.write(1)

    assert counted(made) == 1
    assert made.lost == 0


def test_a_restart_waits_for_a_rotated_file_that_cannot_be_opened(
    stopped, make, writer, log, old, clock, forbidden
):
    writer.write(2)
    older = log.rename(old).rename(log.with_name("slow.log.2"))
    writer.write(3, old)
    writer.write(1)
    forbidden.update((old, older))
    made = make()
    made.resume(stopped)
    fails(made, "slow.log.[12]: Permission denied")
    forbidden.remove(older)
    clock.now += GRACE_SECONDS - 1
    fails(made, "slow.log.1: Permission denied")
    assert (made._old, made._now) == ([], None)
    forbidden.clear()

    assert counted(made) == 6
    assert (made.place, made.lost) == ("saved", 0)


def test_a_restart_goes_on_without_a_rotated_file_that_stays_unreadable(
    stopped, make, writer, log, old, clock, forbidden, caplog
):
    writer.write(2)
    older = log.rename(old).rename(log.with_name("slow.log.2"))
    writer.write(3, old)
    writer.write(1)
    forbidden.add(old)
    made = make()
    made.resume(stopped)
    fails(made)
    clock.now += GRACE_SECONDS

    assert older.exists()
    assert counted(made) == 3
    assert made.lost == 1
    assert caplog.messages == [f"{log}: {old} cannot be opened: Permission denied"]


def test_a_place_that_is_gone_is_told_and_the_log_read_from_its_start(
    stopped, make, writer, log, caplog
):
    log.unlink()
    writer.write(3)
    made = make()
    made.resume(stopped)

    assert counted(made) == 3
    assert (made.place, made.lost) == ("start", 1)
    assert caplog.messages == [
        f"{log}: no file has the saved position: beginning at the start"
    ]


def test_a_log_that_was_empty_is_known_by_its_inode(follower, make, writer, log, old):
    positions = follower.positions
    assert [(one.offset, one.inode) for one in positions] == [(0, log.stat().st_ino)]
    follower.close()
    writer.write(2)
    log.rename(old)
    writer.write(1)
    made = make()
    made.resume(positions)

    assert counted(made) == 3
    assert made.lost == 0


def test_a_resumed_renamed_file_is_still_read_for_a_while(
    stopped, make, writer, log, old, clock
):
    log.rename(old)
    log.touch()
    made = make()
    made.resume(stopped)
    assert counted(made) == 0
    clock.now += GRACE_SECONDS - 1
    writer.write(1, old)
    assert counted(made) == 1
    clock.now += GRACE_SECONDS
    counted(made)

    assert made._old == []


def test_renames_are_logged(follower, writer, log, old, caplog):
    caplog.set_level(logging.INFO)
    writer.write(1)
    counted(follower)
    log.rename(old)
    writer.write(1)
    counted(follower)
    copy_and_cut(log, old)
    counted(follower)

    assert caplog.messages == [
        f"{log} was renamed, following the new file",
        f"{log} was truncated, starting at its top",
    ]


def test_a_poll_reads_about_as_much_as_it_may(follower, writer, log):
    writer.write(3000)
    size = log.stat().st_size

    assert follower.poll(1 << 17) == 1 << 17
    assert follower.behind == size - (1 << 17)
    assert follower.poll(1) == 1 << 16
    assert follower.read_bytes == 3 << 16
    assert follower.poll(MOST) == size - (3 << 16)
    assert (follower.poll(MOST), follower.behind) == (0, 0)


def test_a_position_fits_its_bytes_and_nothing_else(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 2000)
    with file.open("rb") as opened:
        place = Position.at(opened, 1500)
        assert place.fits(opened)
        assert Position(1500, place.probe).fits(opened)
        assert not Position(1499, "0").fits(opened)
        assert not Position(2001, place.probe).fits(opened)
        assert Position(1500, "", place.inode).fits(opened)
        assert not Position(1500, "", place.inode + 1).fits(opened)
        assert not Position(0, place.probe, place.inode + 1).fits(opened)
        assert Position(0, place.probe).fits(opened)


@pytest.fixture
def descriptors():
    """Return a function: the number of files that this process has open."""
    return lambda: len(list(Path("/proc/self/fd").iterdir()))


def test_no_file_stays_open_that_is_not_read(
    follower, writer, log, old, clock, descriptors
):
    writer.write(1)
    counted(follower)
    before = descriptors()
    for _ in range(3):
        log.rename(old)
        writer.write(1)
        counted(follower)
        clock.now += GRACE_SECONDS
        counted(follower)
    assert descriptors() == before
    follower.close()

    assert descriptors() == before - 1
    assert follower._tails == []


def test_a_restart_that_fails_leaves_no_file_open(
    stopped, make, writer, log, old, forbidden, descriptors
):
    log.rename(old)
    writer.write(1)
    forbidden.add(log)
    made = make()
    made.resume([Position(2 * SIZE, "", old.stat().st_ino), *stopped])
    before = descriptors()
    for _ in range(3):
        fails(made, f"cannot read {log}: Permission denied")

    assert descriptors() == before


def test_a_broken_file_is_closed(follower, writer, monkeypatch, descriptors):
    writer.write(1)
    counted(follower)
    before = descriptors()

    def stale(*_):
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(Tail, "read", stale)
    fails(follower, "Stale file handle")

    assert descriptors() == before - 1


def test_what_is_no_file_is_closed(follower, log, descriptors):
    log.unlink()
    log.symlink_to("/dev/null")
    before = descriptors()
    fails(follower)

    assert descriptors() == before

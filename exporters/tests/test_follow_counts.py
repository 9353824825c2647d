"""What the follower counts of its own work: bytes, changes and losses, exactly."""

import shutil

import pytest
from followed_log import MOST, Clock, counted

from keylag_exporters.slow_log.digest import Digest
from keylag_exporters.slow_log.follow import Follower
from keylag_exporters.slow_log.position import Position


@pytest.fixture
def follower(log, writer):
    made = Follower(log, Digest(), Clock())
    made.open(at_end=False)
    made.poll(MOST)
    return made


def test_each_rename_is_counted_and_every_byte_of_all_files(follower, writer, log):
    written = 0
    for number in range(3):
        writer.write(2)
        follower.poll(MOST)
        written += log.stat().st_size
        log.rename(log.with_name(f"slow.log.{number}"))
        writer.write(3)
        follower.poll(MOST)

    assert follower.changes == {"renamed": 3, "truncated": 0}
    assert follower.read_bytes == written + log.stat().st_size
    assert counted(follower) == writer.count


def test_each_truncation_is_counted_and_read_from_its_first_byte(follower, writer, log):
    written = 0
    for _ in range(3):
        writer.write(2)
        follower.poll(MOST)
        written += log.stat().st_size
        log.write_bytes(b"")
        follower.poll(MOST)

    assert follower.changes == {"renamed": 0, "truncated": 3}
    assert follower.read_bytes == written
    assert counted(follower) == writer.count
    assert follower.lost == 3


def test_an_event_that_was_half_read_is_whole_in_the_copy(follower, writer, log):
    events = writer.events(2)
    half = len(events) - 20
    log.write_bytes(events[:half])
    follower.poll(MOST)
    with log.open("ab") as file:
        file.write(events[half:])
    shutil.copy(log, log.with_name("slow.log.1"))
    log.write_bytes(b"")
    writer.write(1)

    assert counted(follower) == writer.count
    assert follower.lost == follower._digest.skipped == 0
    assert follower.read_bytes == len(events) + log.stat().st_size


def resumed(log, *positions):
    follower = Follower(log, Digest(), Clock())
    follower.resume(list(positions))
    follower.poll(MOST)
    return follower


def test_a_file_newer_than_the_saved_one_is_read_from_its_first_byte(log, writer):
    writer.write(2)
    position = Position.at(log.open("rb"), log.stat().st_size)
    log.rename(log.with_name("slow.log.1"))
    writer.write(3)

    follower = resumed(log, position)

    assert follower.read_bytes == log.stat().st_size
    assert (counted(follower), follower.lost) == (3, 0)


def test_where_no_file_has_the_place_only_the_log_is_read(log, writer):
    writer.write(2, log.with_name("slow.log.2"))
    writer.write(2, log.with_name("slow.log.1"))
    writer.write(3)

    follower = resumed(log, Position(5, "of another file", 1))

    assert follower.read_bytes == log.stat().st_size
    assert (counted(follower), follower.lost, follower.place) == (3, 1, "start")


def test_of_two_places_in_one_file_the_later_counts(log, writer):
    writer.write(2)
    middle = log.stat().st_size
    writer.write(2)
    first, last = (
        Position.at(log.open("rb"), offset) for offset in (middle, log.stat().st_size)
    )
    writer.write(1)

    for positions in ((first, last), (last, first)):
        assert counted(resumed(log, *positions)) == 1

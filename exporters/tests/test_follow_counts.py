"""The follower's own counters: bytes, renames, truncations and losses."""

import shutil

import pytest
from log_writer import ALL_BYTES, FakeClock, count_events

from keylag_exporters.slow_log.aggregator import StatementAggregator
from keylag_exporters.slow_log.follow import Follower
from keylag_exporters.slow_log.position import Position


@pytest.fixture
def follower(log, writer):
    made = Follower(log, StatementAggregator(), FakeClock())
    made.open(at_end=False)
    made.poll(ALL_BYTES)
    return made


def test_renames_and_bytes_of_all_files_are_counted(follower, writer, log):
    written = 0
    for number in range(3):
        writer.write(2)
        follower.poll(ALL_BYTES)
        written += log.stat().st_size
        log.rename(log.with_name(f"slow.log.{number}"))
        writer.write(3)
        follower.poll(ALL_BYTES)

    assert follower.file_changes == {"renamed": 3, "truncated": 0}
    assert follower.read_bytes == written + log.stat().st_size
    assert count_events(follower) == writer.count


def test_truncations_are_counted_and_read_from_the_first_byte(follower, writer, log):
    written = 0
    for _ in range(3):
        writer.write(2)
        follower.poll(ALL_BYTES)
        written += log.stat().st_size
        log.write_bytes(b"")
        follower.poll(ALL_BYTES)

    assert follower.file_changes == {"renamed": 0, "truncated": 3}
    assert follower.read_bytes == written
    assert count_events(follower) == writer.count
    assert follower.lost_files == 3


def test_half_read_event_is_completed_from_the_copy(follower, writer, log):
    events = writer.events(2)
    half = len(events) - 20
    log.write_bytes(events[:half])
    follower.poll(ALL_BYTES)
    with log.open("ab") as file:
        file.write(events[half:])
    shutil.copy(log, log.with_name("slow.log.1"))
    log.write_bytes(b"")
    writer.write(1)

    assert count_events(follower) == writer.count
    assert follower.lost_files == follower._aggregator.skipped_events == 0
    assert follower.read_bytes == len(events) + log.stat().st_size


def resumed(log, *positions):
    follower = Follower(log, StatementAggregator(), FakeClock())
    follower.resume(list(positions))
    follower.poll(ALL_BYTES)
    return follower


def test_file_newer_than_the_saved_position_is_read_from_its_start(log, writer):
    writer.write(2)
    position = Position.at(log.open("rb"), log.stat().st_size)
    log.rename(log.with_name("slow.log.1"))
    writer.write(3)

    follower = resumed(log, position)

    assert follower.read_bytes == log.stat().st_size
    assert (count_events(follower), follower.lost_files) == (3, 0)


def test_unknown_position_resumes_at_the_start_of_the_log(log, writer):
    writer.write(2, log.with_name("slow.log.2"))
    writer.write(2, log.with_name("slow.log.1"))
    writer.write(3)

    follower = resumed(log, Position(5, "of another file", 1))

    assert follower.read_bytes == log.stat().st_size
    assert (count_events(follower), follower.lost_files, follower.start_place) == (
        3,
        1,
        "start",
    )


def test_later_of_two_positions_in_one_file_wins(log, writer):
    writer.write(2)
    middle = log.stat().st_size
    writer.write(2)
    first, last = (
        Position.at(log.open("rb"), offset) for offset in (middle, log.stat().st_size)
    )
    writer.write(1)

    for positions in ((first, last), (last, first)):
        assert count_events(resumed(log, *positions)) == 1

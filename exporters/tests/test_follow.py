"""Following a log through rename, truncation, re-creation and restarts."""

import random
import shutil

import pytest
from exporter_helpers import EVENT, MARIADB_START, wait_until
from log_writer import ALL_BYTES, LogWriter, count_events

from keylag_exporters.model import UnreachableError
from keylag_exporters.slow_log.aggregator import StatementAggregator
from keylag_exporters.slow_log.follow import GRACE_SECONDS, Follower
from keylag_exporters.slow_log.selection import ClassSelection
from keylag_exporters.slow_log.source import SlowLogSource
from keylag_exporters.slow_log.statement_classes import COUNTER_FIELDS


@pytest.fixture
def follower(log, writer, clock):
    made = Follower(log, StatementAggregator(), clock)
    made.open(at_end=False)
    return made


def test_new_events_are_counted_once(follower, writer):
    for _ in range(5):
        writer.write(7)
        assert count_events(follower) == writer.count


def test_partial_event_is_counted_once_complete(follower, writer, log):
    text = writer.events(2)
    with log.open("ab", buffering=0) as file:
        for at in range(0, len(text), 11):
            file.write(text[at : at + 11])
            follower.poll(ALL_BYTES)

    assert count_events(follower) == 2
    assert follower._aggregator.skipped_events == 0


def test_renamed_log_is_read_to_its_end(follower, writer, log, clock):
    writer.write(5)
    count_events(follower)
    old = log.rename(log.with_name("slow.log.1"))
    writer.write(3, old)
    count_events(follower)
    writer.write(2)
    count_events(follower)
    writer.write(4, old)  # the server keeps writing to it

    assert count_events(follower) == 14
    clock.now += GRACE_SECONDS + 1
    assert count_events(follower) == 14
    assert len(follower.positions) == 1


def test_copytruncate_loses_no_event(follower, writer, log):
    writer.write(5)
    count_events(follower)
    writer.write(3)  # unread when the copy is made
    shutil.copy(log, log.with_name("slow.log.1"))
    log.write_bytes(b"")
    writer.write(2)

    assert count_events(follower) == 10
    assert follower.file_changes["truncated"] == 1


def test_truncation_is_detected_after_the_log_grew_again(follower, writer, log):
    writer.write(3)
    count_events(follower)
    log.write_bytes(b"")
    writer.write(20)

    assert count_events(follower) == 23


def test_recreated_log_is_read_from_its_start(follower, writer, log):
    writer.write(3)
    count_events(follower)
    log.unlink()
    count_events(follower)
    log.write_bytes(MARIADB_START)
    writer.write(2)

    assert count_events(follower) == 5


def test_log_created_after_start_is_read(tmp_path):
    log = tmp_path / "late.log"
    follower = Follower(log, StatementAggregator())
    follower.open(at_end=True)
    with pytest.raises(UnreachableError):
        follower.poll(ALL_BYTES)
    LogWriter(log).write(2)

    assert count_events(follower) == 2


@pytest.mark.parametrize("seed", range(8))
def test_random_rotations_count_every_event_once(seed, follower, writer, log):
    draw = random.Random(seed)
    for step in range(40):
        match draw.randrange(5):
            case 0:
                log.rename(log.with_name(f"slow.log.{step}"))
                log.touch()
            case 1:
                count_events(follower)
                shutil.copy(log, log.with_name(f"slow.log.{step}"))
                log.write_bytes(b"")
                count_events(follower)
            case _:
                writer.write(draw.randrange(1, 30))

        assert count_events(follower) == writer.count
    assert follower._aggregator.skipped_events == 0


def source(log, tmp_path):
    return SlowLogSource(
        {"file": log, "state": tmp_path / "state", "from_start": True, "top": 10}
    )


def calls(made, samples):
    """Return the counted calls; the last event is counted after a quiet poll."""
    for _ in range(3):
        found = samples(made.collect())
    return sum(v for (name, _), v in found.items() if name.endswith("_log_calls_total"))


@pytest.mark.parametrize("while_down", ["nothing", "rename", "twice", "copytruncate"])
def test_restart_counts_every_event_once(while_down, log, writer, tmp_path, samples):
    writer.write(9)
    with log.open("ab") as file:
        half = writer.events(1)
        file.write(half[:50])
    first = source(log, tmp_path)
    assert calls(first, samples) == 9
    first.close()
    with log.open("ab") as file:
        file.write(half[50:])
    writer.write(3)
    if while_down == "copytruncate":
        shutil.copy(log, log.with_name("slow.log.1"))
        log.write_bytes(b"")
    elif while_down != "nothing":
        log.rename(log.with_name("slow.log.1"))
    writer.write(2)
    if while_down == "twice":
        log.with_name("slow.log.1").rename(log.with_name("slow.log.2"))
        log.rename(log.with_name("slow.log.1"))
    writer.write(1)

    second = source(log, tmp_path)

    assert calls(second, samples) == 16
    second.close()


def test_unreadable_log_raises_and_is_retried(tmp_path, samples):
    log = tmp_path / "slow.log"
    log.mkdir()
    made = source(log, tmp_path)
    with pytest.raises(UnreachableError, match="cannot read"):
        made.collect()
    log.rmdir()
    LogWriter(log).write(2)

    assert calls(made, samples) == 2
    made.close()


@pytest.mark.parametrize("state", [b"{broken", b'{"format": 1}', b"[]"])
def test_broken_state_file_is_ignored(state, log, writer, tmp_path, samples):
    (tmp_path / "state").write_bytes(state)
    writer.write(2)
    made = source(log, tmp_path)

    assert calls(made, samples) == 2
    made.close()


def test_restore_rejects_other_buckets_and_changes_nothing():
    saved = digest_with({"one": 2}).as_dict()
    saved["buckets"] = [0.5, 1.0]
    aggregator = StatementAggregator()

    with pytest.raises(ValueError, match="different buckets"):
        aggregator.restore(saved)

    assert aggregator.classes == {}


def digest_with(times):
    aggregator = StatementAggregator()
    for name, count in times.items():
        event = EVENT.replace(b"SELECT 1", b"SELECT a FROM " + name.encode())
        aggregator.feed((event * count)[1:].removesuffix(b";\n") + b";\n#")
    aggregator.flush()
    return aggregator


def counts(sums):
    return dict(zip(COUNTER_FIELDS, sums, strict=True))


def test_exported_counters_neither_decrease_nor_jump():
    draw = random.Random(1)
    aggregator, selection = StatementAggregator(), ClassSelection(3)
    before, total = {}, 0
    for _ in range(200):
        name = draw.choice("abcdefghij").encode()
        event = EVENT.replace(b"SELECT 1", b"SELECT z FROM " + name)
        aggregator.feed(
            (event * draw.randrange(1, 40))[1:].removesuffix(b";\n") + b";\n#"
        )
        aggregator.flush()
        selected, rest = selection.select(aggregator.classes, aggregator.total)
        now = {one.id: counts(sums)["count"] for one, sums in selected}
        now["other"] = counts(rest)["count"]

        assert len(selected) <= 3
        assert sum(now.values()) <= aggregator.total.count
        assert all(now[key] >= before[key] for key in now if key in before)
        # What leaves a series does not come back in another one.
        grown = sum(now[key] - before.get(key, 0) for key in now)
        assert grown <= aggregator.total.count - total
        before, total = now, aggregator.total.count


def test_all_classes_are_selected_while_they_fit():
    aggregator = digest_with({"a": 2, "b": 1})
    selected, rest = ClassSelection(10).select(aggregator.classes, aggregator.total)

    assert sorted(counts(sums)["count"] for _, sums in selected) == [1, 2]
    assert not any(rest)


@pytest.mark.stack
def test_mariadb_log_is_followed_through_a_rotation(mariadb, tmp_path, samples):
    made = SlowLogSource(
        {"file": mariadb.slow_log, "state": None, "from_start": False, "top": 10}
    )
    tag = "/*keylag:route='GET /v3/auth/tokens',operation='validate'*/"

    def ask(count):
        mariadb.execute(*[f"{tag} SELECT 'rotated', {n}" for n in range(count)])

    ask(30)
    mariadb.slow_log.rename(mariadb.folder / "slow.log.1")
    ask(20)
    mariadb.execute("FLUSH SLOW LOGS")
    ask(10)

    def counted():
        return [
            value
            for (name, labels), value in samples(made.collect()).items()
            if name == "keylag_slow_log_calls_total"
            and dict(labels)["route"] == "GET /v3/auth/tokens"
        ]

    # MariaDB logs a statement after its response.
    wait_until(lambda: counted() == [60])
    made.close()

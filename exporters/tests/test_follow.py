"""A log is followed through rename, truncation, re-creation and restarts."""

import random
import shutil

import pytest
from exporter_helpers import EVENT, MARIADB_START
from followed_log import MOST, Writer, counted

from keylag_exporters.model import UnreachableError
from keylag_exporters.slow_log.classes import NUMBERS
from keylag_exporters.slow_log.digest import Digest
from keylag_exporters.slow_log.follow import GRACE_SECONDS, Follower
from keylag_exporters.slow_log.selection import Selection
from keylag_exporters.slow_log.source import SlowLog


@pytest.fixture
def follower(log, writer, clock):
    made = Follower(log, Digest(), clock)
    made.open(at_end=False)
    return made


def test_new_events_are_counted_once(follower, writer):
    for _ in range(5):
        writer.write(7)
        assert counted(follower) == writer.count


def test_a_partial_event_waits_for_its_end(follower, writer, log):
    text = writer.events(2)
    with log.open("ab", buffering=0) as file:
        for at in range(0, len(text), 11):
            file.write(text[at : at + 11])
            follower.poll(MOST)

    assert counted(follower) == 2
    assert follower._digest.skipped == 0


def test_a_renamed_log_is_read_to_its_end(follower, writer, log, clock):
    writer.write(5)
    counted(follower)
    old = log.rename(log.with_name("slow.log.1"))
    writer.write(3, old)
    counted(follower)
    writer.write(2)
    counted(follower)
    writer.write(4, old)  # the server has not let go of it

    assert counted(follower) == 14
    clock.now += GRACE_SECONDS + 1
    assert counted(follower) == 14
    assert len(follower.positions) == 1


def test_copy_and_truncate_loses_nothing(follower, writer, log):
    writer.write(5)
    counted(follower)
    writer.write(3)  # not read before the copy is made
    shutil.copy(log, log.with_name("slow.log.1"))
    log.write_bytes(b"")
    writer.write(2)

    assert counted(follower) == 10
    assert follower.changes["truncated"] == 1


def test_a_truncated_log_that_grew_again_is_noticed(follower, writer, log):
    writer.write(3)
    counted(follower)
    log.write_bytes(b"")
    writer.write(20)

    assert counted(follower) == 23


def test_a_log_that_was_removed_and_made_again_is_read_from_its_top(
    follower, writer, log
):
    writer.write(3)
    counted(follower)
    log.unlink()
    counted(follower)
    log.write_bytes(MARIADB_START)
    writer.write(2)

    assert counted(follower) == 5


def test_a_log_that_comes_late_is_found(tmp_path):
    log = tmp_path / "late.log"
    follower = Follower(log, Digest())
    follower.open(at_end=True)
    with pytest.raises(UnreachableError):
        follower.poll(MOST)
    Writer(log).write(2)

    assert counted(follower) == 2


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_every_event_is_counted_once(seed, follower, writer, log):
    draw = random.Random(seed)
    for step in range(40):
        match draw.randrange(5):
            case 0:
                log.rename(log.with_name(f"slow.log.{step}"))
                log.touch()
            case 1:
                counted(follower)
                shutil.copy(log, log.with_name(f"slow.log.{step}"))
                log.write_bytes(b"")
                counted(follower)
            case _:
                writer.write(draw.randrange(1, 30))

        assert counted(follower) == writer.count
    assert follower._digest.skipped == 0


def source(log, tmp_path):
    return SlowLog(
        {"file": log, "state": tmp_path / "state", "from_start": True, "top": 10}
    )


def calls(made, samples):
    """Return the calls counted; the last event waits for a quiet moment."""
    for _ in range(3):
        found = samples(made.collect())
    return sum(v for (name, _), v in found.items() if name.endswith("_log_calls_total"))


@pytest.mark.parametrize("while_down", ["nothing", "rename", "twice", "copytruncate"])
def test_a_restart_counts_nothing_twice_and_loses_nothing(
    while_down, log, writer, tmp_path, samples
):
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


def test_a_log_that_cannot_be_read_is_told_and_tried_again(tmp_path, samples):
    log = tmp_path / "slow.log"
    log.mkdir()
    made = source(log, tmp_path)
    with pytest.raises(UnreachableError, match="cannot read"):
        made.collect()
    log.rmdir()
    Writer(log).write(2)

    assert calls(made, samples) == 2
    made.close()


@pytest.mark.parametrize("state", [b"{broken", b'{"format": 1}', b"[]"])
def test_a_broken_state_file_is_no_reason_to_stop(
    state, log, writer, tmp_path, samples
):
    (tmp_path / "state").write_bytes(state)
    writer.write(2)
    made = source(log, tmp_path)

    assert calls(made, samples) == 2
    made.close()


def test_the_state_of_a_version_with_other_buckets_is_left():
    saved = digest_with({"one": 2}).as_dict()
    saved["buckets"] = [0.5, 1.0]
    digest = Digest()

    with pytest.raises(ValueError, match="other buckets"):
        digest.restore(saved)

    assert digest.classes == {}


def digest_with(times):
    digest = Digest()
    for name, count in times.items():
        event = EVENT.replace(b"SELECT 1", b"SELECT a FROM " + name.encode())
        digest.feed((event * count)[1:].removesuffix(b";\n") + b";\n#")
    digest.flush()
    return digest


def counts(sums):
    return dict(zip(NUMBERS, sums, strict=True))


def test_no_exported_counter_ever_steps_back():
    draw = random.Random(1)
    digest, selection = Digest(), Selection(3)
    before = {}
    for _ in range(200):
        name = draw.choice("abcdefghij").encode()
        event = EVENT.replace(b"SELECT 1", b"SELECT z FROM " + name)
        digest.feed((event * draw.randrange(1, 40))[1:].removesuffix(b";\n") + b";\n#")
        digest.flush()
        chosen, rest = selection.choose(digest.classes, digest.total)
        now = {one.id: counts(sums)["count"] for one, sums in chosen}
        now["other"] = counts(rest)["count"]

        assert len(chosen) <= 3
        assert sum(now.values()) <= digest.total.count
        assert all(now[key] >= before[key] for key in now if key in before)
        before = now


def test_few_classes_are_all_exported_and_the_rest_is_nothing():
    digest = digest_with({"a": 2, "b": 1})
    chosen, rest = Selection(10).choose(digest.classes, digest.total)

    assert sorted(counts(sums)["count"] for _, sums in chosen) == [1, 2]
    assert not any(rest)


@pytest.mark.stack
def test_a_real_server_is_followed_through_a_real_rotation(mariadb, tmp_path, samples):
    made = SlowLog(
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
    calls(made, samples)
    found = samples(made.collect())
    counted = [
        value
        for (name, labels), value in found.items()
        if name == "keylag_slow_log_calls_total"
        and dict(labels)["route"] == "GET /v3/auth/tokens"
    ]

    assert counted == [60]
    made.close()

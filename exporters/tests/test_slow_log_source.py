"""The slow-log source: long logs, its state file, and unreadable logs."""

import json
import logging
import threading

import pytest
from exporter_helpers import EVENT
from log_writer import LogWriter

from keylag_exporters.model import UnreachableError
from keylag_exporters.settings import SettingsError
from keylag_exporters.slow_log import source
from keylag_exporters.slow_log.source import POLL_BYTES, POLL_SECONDS, SlowLogSource

CHUNKS = 5


class ThreadlessSource(SlowLogSource):
    """A source without a thread: the test calls what the thread would call."""

    def _run(self):
        """Do nothing."""

    def run(self, turns):
        """Run the thread's loop some times; return its waiting times in seconds."""
        waits = []

        class Stop:
            def set(self):
                """Do nothing."""

            def wait(self, seconds):
                waits.append(seconds)
                return len(waits) > turns

        self._stop = Stop()
        SlowLogSource._run(self)
        return waits


@pytest.fixture
def settings(log, tmp_path):
    return {"file": log, "state": tmp_path / "state", "from_start": True, "top": 10}


def value(families, name):
    """Return the sum of a metric's samples."""
    lines = families.expose().decode().splitlines()
    return sum(float(one.split()[-1]) for one in lines if one.startswith(name))


def lines(families, name):
    return [
        one for one in families.expose().decode().splitlines() if one.startswith(name)
    ]


def calls(families):
    return value(families, "keylag_slow_log_calls_total")


@pytest.fixture
def long_log(writer):
    """A log of CHUNKS polls and some events more; returns its size."""
    one = len(EVENT)
    writer.path.write_bytes(EVENT * (CHUNKS * POLL_BYTES // one + 10))
    return writer.path.stat().st_size


def test_scrape_reads_one_poll_of_a_long_log_and_exports_the_backlog(
    long_log, settings
):
    made = ThreadlessSource(settings)
    for chunk in range(1, CHUNKS + 1):
        found = made.collect()

        assert value(found, "keylag_slow_log_read_bytes_total") == chunk * POLL_BYTES
        behind = long_log - chunk * POLL_BYTES
        assert value(found, "keylag_slow_log_behind_bytes") == behind
        assert calls(found) == (chunk * POLL_BYTES - 1) // len(EVENT)
    made.close()


def test_the_position_is_saved_while_catching_up(long_log, settings, monkeypatch):
    monkeypatch.setattr(source, "SAVE_SECONDS", 0)
    made = ThreadlessSource(settings)
    saved = []
    monkeypatch.setattr(
        source.position,
        "save_state",
        lambda _, state: saved.append(
            (state["positions"][0][0], state["digest"]["total"]["count"])
        ),
    )

    waits = made.run(CHUNKS + 3)

    assert waits == [POLL_SECONDS, *[0] * CHUNKS, *[POLL_SECONDS] * 3]
    whole = [chunk * POLL_BYTES // len(EVENT) for chunk in range(1, CHUNKS + 1)]
    assert [offset // len(EVENT) for offset, _ in saved[:CHUNKS]] == [
        (chunk * POLL_BYTES - 1) // len(EVENT) for chunk in range(1, CHUNKS + 1)
    ]
    assert [count for _, count in saved[:CHUNKS]] == whole
    # The last event of the log counts when nothing follows it.
    assert [count for _, count in saved[CHUNKS:]] == [whole[-1] + 9, whole[-1] + 10]


def test_unchanged_position_is_not_saved_again(writer, settings, tmp_path):
    made = ThreadlessSource(settings)
    writer.write(2)
    made.collect()
    made._save()
    (tmp_path / "state").unlink()
    made._save()
    assert not (tmp_path / "state").exists()
    writer.write(1)
    made.collect()
    made._save()

    assert (tmp_path / "state").exists()
    made.close()


def test_catch_up_resumes_at_the_saved_position_after_a_kill(long_log, settings):
    first = ThreadlessSource(settings)
    first.collect()
    first.collect()
    first._save()  # then the process is killed
    second = ThreadlessSource(settings)
    for _ in range(CHUNKS + 2):
        found = second.collect()

    assert calls(found) == long_log // len(EVENT)
    assert value(found, "keylag_slow_log_skipped_events_total") == 0
    assert lines(found, "keylag_slow_log_start_info") == [
        'keylag_slow_log_start_info{place="saved"} 1.0'
    ]


def test_lock_is_fair_between_scrape_and_thread(writer, settings):
    made = ThreadlessSource(settings)
    turns, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            with made._locked():
                turns.append(1)
                for _ in range(1000):
                    pass

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    waited = []
    for _ in range(200):
        before = len(turns)
        with made._lock_queue:  # the scrape is next in the queue
            between = len(turns)
            with made._lock:
                waited.append(len(turns) - between)
        assert between >= before
    stop.set()
    thread.join()

    assert max(waited) <= 1


@pytest.mark.parametrize("place", ["start", "end"])
def test_start_info_exports_the_start_place(place, writer, settings):
    writer.write(3)
    made = ThreadlessSource({**settings, "from_start": place == "start"})
    made.collect()
    writer.write(1)
    made.collect()
    found = made.collect()

    assert calls(found) == (4 if place == "start" else 1)
    assert lines(found, "keylag_slow_log_start_info") == [
        f'keylag_slow_log_start_info{{place="{place}"}} 1.0'
    ]
    made.close()


def test_unusable_state_is_renamed_and_logged(writer, settings, tmp_path, caplog):
    (tmp_path / "state").write_text('{"format": 1, "digest": {}}')
    writer.write(2)
    made = ThreadlessSource({**settings, "from_start": False})
    writer.write(1)
    made.collect()
    found = made.collect()

    assert calls(found) == 1
    assert lines(found, "keylag_slow_log_start_info")[0].startswith(
        'keylag_slow_log_start_info{place="end"}'
    )
    assert (tmp_path / "state.unusable").read_text() == '{"format": 1, "digest": {}}'
    (message,) = caplog.messages
    assert message.startswith(
        f"the saved state is unusable and was renamed to {tmp_path}/state.unusable; "
        "starting without it: KeyError"
    )
    made.close()


def test_log_missing_at_the_last_run_is_read_from_its_start(log, settings):
    settings["from_start"] = False
    first = ThreadlessSource(settings)
    with pytest.raises(UnreachableError):
        first.collect()
    first.close()
    LogWriter(log).write(2)
    second = ThreadlessSource(settings)
    second.collect()

    assert calls(second.collect()) == 2
    second.close()


@pytest.mark.parametrize("restarted", [False, True], ids=["goes on", "restarted"])
def test_inaccessible_log_starts_at_its_end_once_accessible(
    restarted, settings, tmp_path
):
    folder = tmp_path / "mounted later"
    folder.touch()
    log = folder / "slow.log"
    settings = {**settings, "file": log, "from_start": False}
    made = ThreadlessSource(settings)
    with pytest.raises(UnreachableError, match="Not a directory"):
        made.collect()
    if restarted:
        made.close()
        made = ThreadlessSource(settings)
    folder.unlink()
    folder.mkdir()
    writer = LogWriter(log)
    writer.write(3)
    made.collect()
    writer.write(2)
    made.collect()

    assert calls(made.collect()) == 2
    made.close()


def test_counts_are_exported_while_the_log_is_unreadable(writer, log, settings, caplog):
    caplog.set_level(logging.INFO)
    made = ThreadlessSource(settings)
    writer.write(3)
    made.collect()
    made.collect()
    log.rename(log.with_name("slow.log.1"))
    log.mkdir()
    for errors in range(1, 4):
        with pytest.raises(UnreachableError, match="Is a directory") as caught:
            made.collect()
        assert calls(caught.value.families) == 3
        name = "keylag_slow_log_read_errors_total"
        assert value(caught.value.families, name) == errors
    log.rmdir()
    log.touch()
    writer.write(1)
    made.collect()

    assert calls(made.collect()) == 4
    problem = f"cannot read {log}: Is a directory"
    assert [one for one in caplog.messages if "renamed" not in one] == [
        f"{problem}; retrying",
        "the log is readable again",
    ]
    made.close()


def test_reading_continues_after_an_internal_error(
    writer, settings, monkeypatch, caplog
):
    made = ThreadlessSource(settings)
    feed = made._aggregator.feed

    def fail(chunk):
        monkeypatch.setattr(made._aggregator, "feed", feed)
        message = "no such thing"
        raise RuntimeError(message)

    monkeypatch.setattr(made._aggregator, "feed", fail)
    writer.write(5)
    with pytest.raises(UnreachableError, match="no such thing"):
        made.collect()
    writer.write(5)
    made.collect()
    found = made.collect()

    assert calls(found) == 6  # the last of the first five was buffered
    assert value(found, "keylag_slow_log_read_errors_total") == 1
    assert caplog.records[0].exc_info is not None
    made.close()


@pytest.fixture
def settings_in_folder(settings, tmp_path):
    """Settings with the state file in a folder of its own."""
    return {**settings, "state": tmp_path / "a" / "folder" / "state"}


def replace_by_file(folder):
    """Replace a folder by a file; root ignores permissions."""
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    folder.touch()


def test_failed_save_is_logged_once_and_retried(writer, settings_in_folder, caplog):
    caplog.set_level(logging.INFO)
    made = ThreadlessSource(settings_in_folder)
    folder = settings_in_folder["state"].parent
    replace_by_file(folder)
    writer.write(1)
    made.collect()
    for _ in range(3):
        made._try_to_save()
    folder.unlink()
    made._try_to_save()

    failure, recovery = caplog.messages
    assert failure.startswith("cannot save the position: ")
    assert recovery == "saving the position works again"
    assert json.loads(settings_in_folder["state"].read_text())["positions"]
    made.close()


def test_missing_state_folder_is_created(writer, settings_in_folder):
    made = ThreadlessSource(settings_in_folder)

    assert json.loads(settings_in_folder["state"].read_text())["positions"]
    made.close()


@pytest.mark.parametrize("where", ["in a file", "in a folder's place"])
def test_start_fails_if_the_state_cannot_be_saved(where, writer, settings, tmp_path):
    obstacle = tmp_path / "obstacle"
    obstacle.touch() if where == "in a file" else obstacle.mkdir()
    state = obstacle / "state" if where == "in a file" else obstacle
    before = sorted(tmp_path.iterdir())

    with pytest.raises(
        SettingsError, match=f"cannot use the state file {state}: .*--state"
    ):
        ThreadlessSource({**settings, "state": state})

    assert sorted(tmp_path.iterdir()) == before

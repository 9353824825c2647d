"""Scrapes of several sources: intervals, timeouts and failures."""

import logging
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from keylag_exporters import collector
from keylag_exporters.collector import ScheduledSource, SourceCollector
from keylag_exporters.families import Families
from keylag_exporters.metric import Metric
from keylag_exporters.model import UnreachableError


class FakeSource:
    """Runs an action in each read, and counts the reads."""

    def __init__(self, action=lambda: None):
        self.action = action
        self.reads = 0

    def collect(self):
        self.reads += 1
        families = Families([Metric("made", "gauge", "Made.")])
        families.add("made", self.action() or 1)
        return families

    def close(self):
        pass


def raising(error):
    def action():
        raise error

    return action


@pytest.fixture
def release():
    """An event that a source waits for; set when the test ends."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, (1, 1)),
        (UnreachableError("gone"), (0, 0)),
        (ValueError("bug"), (1, 0)),
    ],
    ids=["", "unreachable", "error"],
)
def test_outcome_of_each_source_is_exported_separately(
    request, error, expected, samples
):
    reason = request.node.callspec.id
    action = raising(error) if error else lambda: None
    sources = [
        ScheduledSource("a", FakeSource(action), 60),
        ScheduledSource("b", FakeSource(), 60),
    ]
    found = samples(SourceCollector(sources).expose())
    failures = {
        dict(labels)["reason"]: value
        for (name, labels), value in found.items()
        if name.endswith("failures_total") and ("source", "a") in labels
    }

    assert found["keylag_exporter_source_up", (("source", "a"),)] == expected[0]
    assert found["keylag_exporter_source_success", (("source", "a"),)] == expected[1]
    assert found["keylag_exporter_source_success", (("source", "b"),)] == 1
    assert ("made", ()) in found
    assert failures == {
        name: name == reason for name in ("unreachable", "timeout", "error")
    }


@pytest.mark.parametrize(
    ("source_timeout", "scrape_timeout"), [(0.01, 3600), (3600, 0.01)]
)
def test_hanging_source_does_not_block_other_sources(
    source_timeout, scrape_timeout, samples, release
):
    """No second read starts while the first hangs, and no later scrape waits for it."""
    hanging = FakeSource(release.wait)
    sources = [
        ScheduledSource("a", hanging, source_timeout),
        ScheduledSource("b", FakeSource(), 3600),
    ]
    scraper = SourceCollector(sources)
    scraper.expose(scrape_timeout)
    sources[1].current_read.wait(math.inf)  # a short scrape may end before it
    found = samples(scraper.expose(scrape_timeout))
    timeouts = (("reason", "timeout"), ("source", "a"))

    assert found["keylag_exporter_source_up", (("source", "a"),)] == 0
    assert found["keylag_exporter_source_failures_total", timeouts] == 2
    assert found["keylag_exporter_source_success", (("source", "b"),)] == 1
    assert found["made", ()] == 1
    assert hanging.reads == 1


@pytest.mark.parametrize(("timeout", "success"), [(3600, 1), (0, 0)])
def test_previous_read_is_exposed_while_the_current_one_runs(
    timeout, success, samples, release
):
    """After the source's own timeout the source fails instead."""
    source = FakeSource(lambda: 7 if source.reads == 1 else release.wait())
    running = ScheduledSource("a", source, 3600)
    scraper = SourceCollector([running])
    scraper.expose()
    running.timeout = timeout
    found = samples(scraper.expose(0))

    assert source.reads == 2
    assert found["keylag_exporter_source_success", (("source", "a"),)] == success
    assert found.get(("made", ())) == (7 if success else None)


def test_late_read_is_exposed_by_the_next_scrape(samples, release):
    source = FakeSource(lambda: release.wait() and 7)
    running = ScheduledSource("a", source, 3600, interval=3600)
    scraper = SourceCollector([running])
    assert ("made", ()) not in samples(scraper.expose(0))
    release.set()

    assert samples(scraper.expose())["made", ()] == 7
    assert source.reads == 1


@pytest.mark.parametrize(
    "action",
    [lambda: None, raising(UnreachableError("gone")), raising(ValueError("bug"))],
    ids=["well", "unreachable", "error"],
)
@pytest.mark.parametrize(("interval", "reads"), [(3600, 1), (0, 5)])
def test_source_is_read_once_per_interval_even_after_failures(
    action, interval, reads, samples
):
    """A failing statement is not repeated by each scrape."""
    source = FakeSource(action)
    scraper = SourceCollector([ScheduledSource("a", source, 60, interval)])
    texts = [samples(scraper.expose()) for _ in range(5)]
    when = "keylag_exporter_source_read_timestamp_seconds", (("source", "a"),)

    assert source.reads == reads
    assert len({text[when] for text in texts}) == reads
    assert len({text.get(("made", ())) for text in texts}) == 1


@pytest.mark.parametrize(
    ("error", "reads"), [(UnreachableError("gone"), 5), (ValueError("bug"), 1)]
)
def test_only_unreachable_sources_are_retried_before_the_interval_ends(
    error, reads, monkeypatch
):
    monkeypatch.setattr(collector, "RETRY_SECONDS", 0)
    source = FakeSource(raising(error))
    scraper = SourceCollector([ScheduledSource("a", source, 60, interval=3600)])
    for _ in range(5):
        scraper.expose()

    assert source.reads == reads


def test_slightly_early_scrape_starts_a_new_read(monkeypatch):
    """Otherwise only every second scrape of the same interval would read the source."""
    now = [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0])
    monkeypatch.setattr(collector, "time", clock)
    source = FakeSource()
    scraper = SourceCollector([ScheduledSource("a", source, 60, interval=5)])
    for _ in range(10):
        scraper.expose()
        now[0] += 4.99

    assert source.reads == 10


def test_families_of_an_unreachable_source_are_exposed(samples):
    """An example is `memcached_up` 0."""
    families = Families([Metric("made_up", "gauge", "Made.")])
    families.add("made_up", 0)
    source = FakeSource(raising(UnreachableError("gone", families)))
    found = samples(SourceCollector([ScheduledSource("a", source, 60)]).expose())

    assert found["made_up", ()] == 0
    assert found["keylag_exporter_source_up", (("source", "a"),)] == 0


def test_failure_is_logged_once_and_its_end_once(caplog):
    caplog.set_level(logging.INFO)
    errors = [None, ValueError("bug"), ValueError("bug"), None, None]
    source = FakeSource(lambda: (error := errors.pop(0)) and raising(error)())
    scraper = SourceCollector([ScheduledSource("a", source, 60)])
    for _ in range(5):
        scraper.expose()
    first, last = (record.getMessage() for record in caplog.records)

    assert first.startswith("a: error: Traceback")
    assert "ValueError: bug" in first
    assert last == "a: recovered"


class CountingLock:
    """A lock that counts the threads that wait for it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.arrived = threading.Semaphore(0)

    def __enter__(self):
        self.arrived.release()
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def test_concurrent_scrapes_share_one_read(release):
    """Scrapes do not pile up if Prometheus scrapes faster than sources answer."""
    begun = threading.Event()
    source = FakeSource(lambda: begun.set() or release.wait(60))
    scraper = SourceCollector([ScheduledSource("a", source, 60)])
    scraper._lock = lock = CountingLock()

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(scraper.expose)]
        # Scrapes that come before the first read share that one.
        assert begun.wait(60)
        answers += [pool.submit(scraper.expose) for _ in range(3)]
        for _ in answers:
            assert lock.arrived.acquire(timeout=60)
        release.set()

    assert all(answer.result() for answer in answers)
    assert source.reads == 2

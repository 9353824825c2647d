"""One scrape of several sources: intervals, time-outs, failures."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from keylag_exporters import collector
from keylag_exporters.collector import Running, SourceCollector
from keylag_exporters.families import Families
from keylag_exporters.model import Declared, UnreachableError


class Made:
    """A source that does what it is told, and counts how often."""

    def __init__(self, action=lambda: None):
        self.action = action
        self.readings = 0

    def collect(self):
        self.readings += 1
        families = Families([Declared("made", "gauge", "Made.")])
        families.add("made", self.action() or 1)
        return families

    def close(self):
        pass


def raising(error):
    def action():
        raise error

    return action


@pytest.fixture
def go_on():
    """An event that a source waits for; it is set when the test is over."""
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
def test_each_source_tells_how_it_fared_and_silences_no_other(
    request, error, expected, samples
):
    reason = request.node.callspec.id
    action = raising(error) if error else lambda: None
    sources = [Running("a", Made(action), 60), Running("b", Made(), 60)]
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
def test_a_source_that_hangs_silences_no_other(
    source_timeout, scrape_timeout, samples, go_on
):
    """It is not asked again while it hangs, nor does the next scrape wait for it."""
    hanging = Made(go_on.wait)
    sources = [Running("a", hanging, source_timeout), Running("b", Made(), 3600)]
    scraper = SourceCollector(sources)
    scraper.expose(scrape_timeout)
    found = samples(scraper.expose(scrape_timeout))
    timeouts = (("reason", "timeout"), ("source", "a"))

    assert found["keylag_exporter_source_up", (("source", "a"),)] == 0
    assert found["keylag_exporter_source_failures_total", timeouts] == 2
    assert found["keylag_exporter_source_success", (("source", "b"),)] == 1
    assert found["made", ()] == 1
    assert hanging.readings == 1


@pytest.mark.parametrize(("timeout", "success"), [(3600, 1), (0, 0)])
def test_a_reading_under_way_is_bridged_by_the_one_before(
    timeout, success, samples, go_on
):
    """Until its own time-out: then the source is failing."""
    source = Made(lambda: 7 if source.readings == 1 else go_on.wait())
    running = Running("a", source, 3600)
    scraper = SourceCollector([running])
    scraper.expose()
    running.timeout = timeout
    found = samples(scraper.expose(0))

    assert source.readings == 2
    assert found["keylag_exporter_source_success", (("source", "a"),)] == success
    assert found.get(("made", ())) == (7 if success else None)


def test_a_late_reading_is_delivered_by_the_next_scrape(samples, go_on):
    source = Made(lambda: go_on.wait() and 7)
    running = Running("a", source, 3600, interval=3600)
    scraper = SourceCollector([running])
    assert ("made", ()) not in samples(scraper.expose(0))
    go_on.set()

    assert samples(scraper.expose())["made", ()] == 7
    assert source.readings == 1


@pytest.mark.parametrize(
    "action",
    [lambda: None, raising(UnreachableError("gone")), raising(ValueError("bug"))],
    ids=["well", "unreachable", "error"],
)
@pytest.mark.parametrize(("interval", "readings"), [(3600, 1), (0, 5)])
def test_a_source_is_read_once_per_interval_however_it_fares(
    action, interval, readings, samples
):
    """A failing statement must not run with every scrape either."""
    source = Made(action)
    scraper = SourceCollector([Running("a", source, 60, interval)])
    texts = [samples(scraper.expose()) for _ in range(5)]
    when = "keylag_exporter_source_read_timestamp_seconds", (("source", "a"),)

    assert source.readings == readings
    assert len({text[when] for text in texts}) == readings
    assert len({text.get(("made", ())) for text in texts}) == 1


@pytest.mark.parametrize(
    ("error", "readings"), [(UnreachableError("gone"), 5), (ValueError("bug"), 1)]
)
def test_only_an_unreachable_source_is_tried_before_its_interval_is_over(
    error, readings, monkeypatch
):
    monkeypatch.setattr(collector, "RETRY_SECONDS", 0)
    source = Made(raising(error))
    scraper = SourceCollector([Running("a", source, 60, interval=3600)])
    for _ in range(5):
        scraper.expose()

    assert source.readings == readings


def test_a_scrape_that_comes_a_little_early_reads_all_the_same(monkeypatch):
    """Else a source would be read in every other scrape of the same interval."""
    now = [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0])
    monkeypatch.setattr(collector, "time", clock)
    source = Made()
    scraper = SourceCollector([Running("a", source, 60, interval=5)])
    for _ in range(10):
        scraper.expose()
        now[0] += 4.99

    assert source.readings == 10


def test_what_an_unreachable_source_can_tell_is_exposed(samples):
    """As `memcached_up`, which is 0 then."""
    families = Families([Declared("made_up", "gauge", "Made.")])
    families.add("made_up", 0)
    source = Made(raising(UnreachableError("gone", families)))
    found = samples(SourceCollector([Running("a", source, 60)]).expose())

    assert found["made_up", ()] == 0
    assert found["keylag_exporter_source_up", (("source", "a"),)] == 0


def test_a_failure_is_logged_when_it_begins_and_when_it_ends(caplog):
    caplog.set_level(logging.INFO)
    errors = [None, ValueError("bug"), ValueError("bug"), None, None]
    source = Made(lambda: (error := errors.pop(0)) and raising(error)())
    scraper = SourceCollector([Running("a", source, 60)])
    for _ in range(5):
        scraper.expose()
    first, last = (record.getMessage() for record in caplog.records)

    assert first.startswith("a: error: Traceback")
    assert "ValueError: bug" in first
    assert last == "a: works again"


class Door:
    """A lock that tells of each who comes to it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.came = threading.Semaphore(0)

    def __enter__(self):
        self.came.release()
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def test_all_who_wait_get_one_answer(go_on):
    """A Prometheus that asks faster than it is answered makes no heap of scrapes."""
    source = Made(lambda: go_on.wait(60))
    scraper = SourceCollector([Running("a", source, 60)])
    scraper._lock = door = Door()

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(scraper.expose) for _ in range(4)]
        for _ in answers:
            assert door.came.acquire(timeout=60)
        go_on.set()

    assert all(answer.result() for answer in answers)
    assert source.readings == 2

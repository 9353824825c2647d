"""The response recorder, with native and pure timers."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from keylag_otel.response import ResponseRecorder
from keylag_otel.wrappers import count_fault

HEADERS = [("Content-Type", "text/plain")]
ROUTE = "/v3/users"


class TimedBody:
    """A body that takes 5 ns for each chunk, and to close."""

    def __init__(self, hot_path: Any, time: Any, chunks: list[Any]) -> None:
        self._half = hot_path
        self._time = time
        self._parts = chunks
        self.seen: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        for chunk in self._parts:
            self._work()
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    def close(self) -> None:
        self._work()

    def _work(self) -> None:
        self.seen.append(self._half.timer_var.get())
        self._time.passes(5)


@pytest.fixture
def timer(hot_path, time_source) -> Any:
    return hot_path.RequestTimer("GET", 3, 2)


class FakeAggregator:
    """A fake aggregator that records its calls."""

    def __init__(self) -> None:
        self.added: list[Any] = []
        self.finish_trace: list[Any] = []

    def add(self, timer: Any, status: int) -> None:
        self.added.append((timer, status))

    def trace(self, timer: Any, status: int) -> None:
        self.finish_trace.append((timer, status))


@pytest.fixture
def aggregator() -> FakeAggregator:
    return FakeAggregator()


@pytest.fixture
def started() -> list[Any]:
    return []


@pytest.fixture
def make_recorder(hot_path, timer, aggregator, started) -> Any:
    """Return a factory of response recorders, with or without a breakdown."""

    def start_response(*args: Any, **names: Any) -> str:
        started.append((*args, *names.values()))
        return "write"

    def make(timing: Any = None) -> Any:
        recorder = ResponseRecorder(
            timer, start_response, aggregator, lambda _: ROUTE, aggregator.trace
        )
        recorder.add_timing = timing
        return recorder

    return make


@pytest.fixture
def serve_body(make_recorder) -> Any:
    """Return a function that serves a body through a response recorder."""
    return lambda chunks: make_recorder().serve(lambda *_: chunks)


@pytest.fixture
def faults(hot_path) -> Iterator[list[Any]]:
    seen_headers: list[Any] = []
    hot_path.set_fault_handler(seen_headers.append)
    yield seen_headers
    hot_path.set_fault_handler(count_fault)


def test_start_response_passes_its_arguments_on(make_recorder, started) -> None:
    error = (KeyError, KeyError(), None)
    recorder = make_recorder()

    assert recorder("200 OK", HEADERS) == "write"
    assert recorder("500 Oh", HEADERS, error) == "write"
    assert recorder("500 Oh", HEADERS, exc_info=error) == "write"
    assert started == [("200 OK", HEADERS), *[("500 Oh", HEADERS, error)] * 2]


@pytest.mark.parametrize("wrong", [(), ("200 OK",)])
def test_start_response_requires_status_and_headers(
    make_recorder, started, wrong
) -> None:
    with pytest.raises(TypeError):
        make_recorder()(*wrong)

    assert started == []


def test_breakdown_is_appended_to_the_headers(
    time_source, timer, make_recorder, started
) -> None:
    seen_headers = []

    def timing(timer: Any, headers: Any) -> Any:
        seen_headers.append(timer.self_times())
        return [*headers, "breakdown"]

    recorder = make_recorder(timing)
    time_source.passes(7)
    recorder("200 OK", ["header"])

    assert started == [("200 OK", ["header", "breakdown"])]
    assert seen_headers == [{3: 7}]


def test_failing_breakdown_leaves_headers_unchanged(
    hot_path, make_recorder, started, faults
) -> None:
    def timing(timer: Any, headers: Any) -> Any:
        raise OSError

    make_recorder(timing)("200 OK", HEADERS)

    assert started == [("200 OK", HEADERS)]
    assert faults == [ResponseRecorder]


@pytest.mark.parametrize(
    ("line", "status"),
    [("201 Created", 201), ("404", 404), ("no number", 500), ("", 500)],
)
def test_request_is_aggregated_once_with_its_status(
    make_recorder, aggregator, faults, line, status
) -> None:
    recorder = make_recorder()
    recorder(line, HEADERS)
    recorder.close()
    recorder.close()

    assert [added for _, added in aggregator.added] == [status]
    assert len(faults) == (not line[:3].isdigit())


def test_unstarted_response_counts_as_500(timer, make_recorder, aggregator) -> None:
    make_recorder().close()

    assert aggregator.added == [(timer, 500)]


def test_request_with_events_is_traced(timer, make_recorder, aggregator) -> None:
    timer.records_events = True
    recorder = make_recorder()
    recorder("200 OK", HEADERS)
    recorder.close()

    assert (aggregator.added, aggregator.finish_trace) == ([], [(timer, 200)])


def test_failing_aggregator_is_reported_and_suppressed(
    hot_path, make_recorder, aggregator, faults, monkeypatch
) -> None:
    monkeypatch.setattr(aggregator, "add", lambda *_: 1 / 0)

    make_recorder().close()

    assert faults == [ResponseRecorder]


@pytest.mark.parametrize("way", ["close", "serve", "start"])
def test_system_exit_propagates(make_recorder, aggregator, monkeypatch, way) -> None:
    def end(*_: Any) -> None:
        raise SystemExit

    monkeypatch.setattr(aggregator, "add", end)
    recorder = make_recorder(end)
    ways = {
        "serve": lambda: recorder.serve(lambda *_: []),
        "start": lambda: recorder("200 OK", HEADERS),
    }

    with pytest.raises(SystemExit):
        ways.get(way, getattr(recorder, way, None))()


@pytest.mark.parametrize("made", [[b"a"], (b"a",)])
def test_complete_body_is_returned_unchanged(
    time_source, timer, make_recorder, aggregator, made
) -> None:
    recorder = make_recorder()
    time_source.passes(4)

    assert recorder.serve(lambda *_: made) is made
    assert aggregator.added == [(timer, 500)]
    assert timer.self_times() == {3: 4}


def test_streamed_chunks_pass_and_are_timed(
    hot_path, time_source, timer, serve_body, aggregator
) -> None:
    chunks = TimedBody(hot_path, time_source, [b"a", b"b"])
    body = serve_body(chunks)
    seen = []
    for chunk in body:
        seen.append(chunk)
        assert hot_path.timer_var.get() is None
        time_source.passes(1_000)
    assert aggregator.added == []
    body.close()

    assert seen == [b"a", b"b"]
    assert len(aggregator.added) == 1
    assert chunks.seen == [timer] * 3
    assert timer.self_times() == {3: 15}


def test_exception_of_a_chunk_propagates_and_is_timed(
    hot_path, time_source, timer, serve_body, aggregator
) -> None:
    body = serve_body(TimedBody(hot_path, time_source, [b"a", KeyError("mine")]))
    assert next(body) == b"a"

    with pytest.raises(KeyError, match="mine"):
        next(body)
    body.close()

    assert hot_path.timer_var.get() is None
    assert timer.self_times() == {3: 15}
    assert len(aggregator.added) == 1


def test_body_without_close_is_accepted(serve_body, timer, aggregator) -> None:
    body = serve_body({b"a": None})

    assert list(body) == [b"a"]
    body.close()

    assert len(aggregator.added) == 1


@pytest.mark.parametrize("chunks", [None, 3])
def test_body_that_is_not_iterable_raises(hot_path, serve_body, chunks) -> None:
    with pytest.raises(TypeError):
        next(serve_body(chunks))

    assert hot_path.timer_var.get() is None


def test_failing_close_propagates_and_finishes_the_request(
    hot_path, serve_body, aggregator
) -> None:
    class Failing(set[bytes]):
        def close(self) -> None:
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - it says nothing
        serve_body(Failing()).close()

    assert len(aggregator.added) == 1
    assert hot_path.timer_var.get() is None


def test_abandoned_body_is_garbage_collected(hot_path, time_source, serve_body) -> None:
    chunks = TimedBody(hot_path, time_source, [b"a", b"b"])
    body = serve_body(chunks)
    chunks.seen.append(body)  # a reference cycle
    next(body)
    gone = weakref.ref(chunks)

    del body, chunks
    gc.collect()

    assert gone() is None


@pytest.mark.parametrize(("matched", "route"), [(None, ROUTE), ("/v3", "/v3")])
def test_unmatched_route_is_looked_up(
    timer, make_recorder, aggregator, matched, route
) -> None:
    timer.route = matched

    make_recorder().serve(lambda *_: [])

    assert aggregator.added == [(timer, 500)]
    assert timer.route == route


def test_failing_route_look_up_is_reported_and_suppressed(
    hot_path, timer, aggregator, faults
) -> None:
    recorder = ResponseRecorder(
        timer, print, aggregator, lambda _: 1 / 0, aggregator.trace
    )

    assert recorder.serve(lambda *_: []) == []
    assert faults == [ResponseRecorder]


@pytest.mark.parametrize("error", [KeyError, SystemExit])
def test_raising_application_is_aggregated_and_propagates(
    hot_path, timer, make_recorder, aggregator, error
) -> None:
    def application(environ: Any, start_response: Any) -> Any:
        assert hot_path.timer_var.get() is timer
        raise error

    with pytest.raises(error):
        make_recorder().serve(application)

    assert hot_path.timer_var.get() is None
    assert aggregator.added == [(timer, 500)]

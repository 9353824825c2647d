"""A request's way out, with clocks in Python and in C."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from keylag_otel.answer import Answer
from keylag_otel.wrappers import fault

HEADERS = [("Content-Type", "text/plain")]
ROUTE = "/v3/users"


class Parts:
    """An answer that takes 5 ns for each part, and for being closed."""

    def __init__(self, half: Any, time: Any, parts: list[Any]) -> None:
        self._half = half
        self._time = time
        self._parts = parts
        self.seen: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        for part in self._parts:
            self._work()
            if isinstance(part, Exception):
                raise part
            yield part

    def close(self) -> None:
        self._work()

    def _work(self) -> None:
        self.seen.append(self._half.active.get())
        self._time.passes(5)


@pytest.fixture
def clock(half, half_time) -> Any:
    return half.Clock("GET", 3, 2)


class Ends:
    """A ledger that only remembers what was added to it."""

    def __init__(self) -> None:
        self.added: list[Any] = []
        self.traced: list[Any] = []

    def add(self, clock: Any, status: int) -> None:
        self.added.append((clock, status))

    def trace(self, clock: Any, status: int) -> None:
        self.traced.append((clock, status))


@pytest.fixture
def ends() -> Ends:
    return Ends()


@pytest.fixture
def started() -> list[Any]:
    return []


@pytest.fixture
def answer_with(half, clock, ends, started) -> Any:
    """Return what makes a request's answer, with or without a breakdown."""

    def start_response(*args: Any, **names: Any) -> str:
        started.append((*args, *names.values()))
        return "write"

    def make(timing: Any = None) -> Any:
        answer = Answer(clock, start_response, ends, lambda _: ROUTE, ends.trace)
        answer.timing = timing
        return answer

    return make


@pytest.fixture
def wrapped(answer_with) -> Any:
    """Return what wraps an answer for a request."""
    return lambda parts: answer_with().serve(lambda *_: parts)


@pytest.fixture
def faults(half) -> Iterator[list[Any]]:
    told: list[Any] = []
    half.tell_faults(told.append)
    yield told
    half.tell_faults(fault)


def test_the_start_of_an_answer_is_passed_on(answer_with, started) -> None:
    error = (KeyError, KeyError(), None)
    answer = answer_with()

    assert answer("200 OK", HEADERS) == "write"
    assert answer("500 Oh", HEADERS, error) == "write"
    assert answer("500 Oh", HEADERS, exc_info=error) == "write"
    assert started == [("200 OK", HEADERS), *[("500 Oh", HEADERS, error)] * 2]


@pytest.mark.parametrize("wrong", [(), ("200 OK",)])
def test_what_is_no_start_is_refused(answer_with, started, wrong) -> None:
    with pytest.raises(TypeError):
        answer_with()(*wrong)

    assert started == []


def test_the_breakdown_comes_behind_the_headers(
    half_time, clock, answer_with, started
) -> None:
    told = []

    def timing(clock: Any, headers: Any) -> Any:
        told.append(clock.spent())
        return [*headers, "breakdown"]

    answer = answer_with(timing)
    half_time.passes(7)
    answer("200 OK", ["header"])

    assert started == [("200 OK", ["header", "breakdown"])]
    assert told == [{3: 7}]


def test_a_breakdown_that_fails_changes_no_header(
    half, answer_with, started, faults
) -> None:
    def timing(clock: Any, headers: Any) -> Any:
        raise OSError

    answer_with(timing)("200 OK", HEADERS)

    assert started == [("200 OK", HEADERS)]
    assert faults == [Answer]


@pytest.mark.parametrize(
    ("line", "status"),
    [("201 Created", 201), ("404", 404), ("no number", 500), ("", 500)],
)
def test_a_request_is_added_once_with_its_status(
    answer_with, ends, faults, line, status
) -> None:
    answer = answer_with()
    answer(line, HEADERS)
    answer.close()
    answer.close()

    assert [added for _, added in ends.added] == [status]
    assert len(faults) == (not line[:3].isdigit())


def test_what_was_not_started_is_an_error_of_the_server(
    clock, answer_with, ends
) -> None:
    answer_with().close()

    assert ends.added == [(clock, 500)]


def test_a_request_that_wrote_down_what_it_did_is_traced(
    clock, answer_with, ends
) -> None:
    clock.writes = True
    answer = answer_with()
    answer("200 OK", HEADERS)
    answer.close()

    assert (ends.added, ends.traced) == ([], [(clock, 200)])


def test_a_ledger_that_fails_is_our_fault_alone(
    half, answer_with, ends, faults, monkeypatch
) -> None:
    monkeypatch.setattr(ends, "add", lambda *_: 1 / 0)

    answer_with().close()

    assert faults == [Answer]


@pytest.mark.parametrize("way", ["close", "serve", "start"])
def test_what_ends_a_program_ends_it(answer_with, ends, monkeypatch, way) -> None:
    def end(*_: Any) -> None:
        raise SystemExit

    monkeypatch.setattr(ends, "add", end)
    answer = answer_with(end)
    ways = {
        "serve": lambda: answer.serve(lambda *_: []),
        "start": lambda: answer("200 OK", HEADERS),
    }

    with pytest.raises(SystemExit):
        ways.get(way, getattr(answer, way, None))()


@pytest.mark.parametrize("made", [[b"a"], (b"a",)])
def test_what_is_made_already_passes_as_it_is(
    half_time, clock, answer_with, ends, made
) -> None:
    answer = answer_with()
    half_time.passes(4)

    assert answer.serve(lambda *_: made) is made
    assert ends.added == [(clock, 500)]
    assert clock.spent() == {3: 4}


def test_parts_pass_and_their_making_is_booked(
    half, half_time, clock, wrapped, ends
) -> None:
    parts = Parts(half, half_time, [b"a", b"b"])
    body = wrapped(parts)
    seen = []
    for part in body:
        seen.append(part)
        assert half.active.get() is None
        half_time.passes(1_000)
    assert ends.added == []
    body.close()

    assert seen == [b"a", b"b"]
    assert len(ends.added) == 1
    assert parts.seen == [clock] * 3
    assert clock.spent() == {3: 15}


def test_an_exception_is_the_servers_and_its_time_is_booked(
    half, half_time, clock, wrapped, ends
) -> None:
    body = wrapped(Parts(half, half_time, [b"a", KeyError("mine")]))
    assert next(body) == b"a"

    with pytest.raises(KeyError, match="mine"):
        next(body)
    body.close()

    assert half.active.get() is None
    assert clock.spent() == {3: 15}
    assert len(ends.added) == 1


def test_what_cannot_be_closed_need_not_be(wrapped, clock, ends) -> None:
    body = wrapped({b"a": None})

    assert list(body) == [b"a"]
    body.close()

    assert len(ends.added) == 1


@pytest.mark.parametrize("parts", [None, 3])
def test_what_has_no_parts_is_the_servers_error(half, wrapped, parts) -> None:
    with pytest.raises(TypeError):
        next(wrapped(parts))

    assert half.active.get() is None


def test_closing_may_fail(half, wrapped, ends) -> None:
    class Failing(set[bytes]):
        def close(self) -> None:
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - it says nothing
        wrapped(Failing()).close()

    assert len(ends.added) == 1
    assert half.active.get() is None


def test_a_body_that_is_given_up_is_freed(half, half_time, wrapped) -> None:
    parts = Parts(half, half_time, [b"a", b"b"])
    body = wrapped(parts)
    parts.seen.append(body)  # a circle
    next(body)
    gone = weakref.ref(parts)

    del body, parts
    gc.collect()

    assert gone() is None


@pytest.mark.parametrize(("matched", "route"), [(None, ROUTE), ("/v3", "/v3")])
def test_a_route_that_was_not_matched_is_looked_for(
    clock, answer_with, ends, matched, route
) -> None:
    clock.route = matched

    answer_with().serve(lambda *_: [])

    assert ends.added == [(clock, 500)]
    assert clock.route == route


def test_a_route_that_cannot_be_looked_for_is_our_fault_alone(
    half, clock, ends, faults
) -> None:
    answer = Answer(clock, print, ends, lambda _: 1 / 0, ends.trace)

    assert answer.serve(lambda *_: []) == []
    assert faults == [Answer]


@pytest.mark.parametrize("error", [KeyError, SystemExit])
def test_an_application_that_raises_is_added_and_heard(
    half, clock, answer_with, ends, error
) -> None:
    def application(environ: Any, start_response: Any) -> Any:
        assert half.active.get() is clock
        raise error

    with pytest.raises(error):
        answer_with().serve(application)

    assert half.active.get() is None
    assert ends.added == [(clock, 500)]

"""The parts of an answer, in Python and in C."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest


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


@pytest.fixture
def finished() -> list[str]:
    return []


@pytest.fixture
def wrapped(half, clock, finished) -> Any:
    """Return what wraps an answer for a request."""
    return lambda parts: half.Body(parts, clock, lambda: finished.append("finished"))


def test_parts_pass_and_their_making_is_booked(
    half, half_time, clock, wrapped, finished
) -> None:
    parts = Parts(half, half_time, [b"a", b"b"])
    body = wrapped(parts)
    seen = []
    for part in body:
        seen.append(part)
        assert half.active.get() is None
        half_time.passes(1_000)
    assert finished == []
    body.close()

    assert seen == [b"a", b"b"]
    assert finished == ["finished"]
    assert parts.seen == [clock] * 3
    assert clock.spent() == {3: 15}


def test_an_exception_is_the_servers_and_its_time_is_booked(
    half, half_time, clock, wrapped, finished
) -> None:
    body = wrapped(Parts(half, half_time, [b"a", KeyError("mine")]))
    assert next(body) == b"a"

    with pytest.raises(KeyError, match="mine"):
        next(body)
    body.close()

    assert half.active.get() is None
    assert clock.spent() == {3: 15}
    assert finished == ["finished"]


def test_a_list_need_not_be_closed(wrapped, clock, finished) -> None:
    body = wrapped([b"a"])

    assert list(body) == [b"a"]
    body.close()

    assert finished == ["finished"]


@pytest.mark.parametrize("parts", [None, 3])
def test_what_has_no_parts_is_the_servers_error(half, wrapped, parts) -> None:
    with pytest.raises(TypeError):
        next(wrapped(parts))

    assert half.active.get() is None


def test_closing_may_fail(half, wrapped, finished) -> None:
    class Failing(list[bytes]):
        def close(self) -> None:
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - it says nothing
        wrapped(Failing()).close()

    assert finished == ["finished"]
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

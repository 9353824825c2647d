"""The last export: made if it can be, and never waited for too long."""

from __future__ import annotations

import atexit
import os
import threading
from threading import Event
from typing import Any

import pytest

from keylag_otel import environment
from keylag_otel.farewell import Farewell


@pytest.fixture(autouse=True)
def registered(monkeypatch) -> list[Any]:
    """What would be called at exit."""
    calls: list[Any] = []
    monkeypatch.setattr(atexit, "register", calls.append)
    return calls


class Provider:
    """A provider that can be slow, or broken, to shut down."""

    def __init__(self, *, hangs: bool = False, fails: bool = False) -> None:
        self.closed = Event()
        self._hangs = Event()
        self._fails = fails
        if not hangs:
            self._hangs.set()

    def shutdown(self) -> None:
        self._hangs.wait()
        self.closed.set()
        if self._fails:
            message = "broken"
            raise OSError(message)


def test_it_closes_the_provider_when_the_process_ends(registered) -> None:
    provider = Provider()
    Farewell(provider.shutdown, seconds=10)

    (at_exit,) = registered
    at_exit()

    assert provider.closed.is_set()


def test_a_provider_that_hangs_is_left(caplog) -> None:
    caplog.set_level("INFO")
    provider = Provider(hangs=True)

    Farewell(provider.shutdown, seconds=0.01)()

    assert not provider.closed.is_set()
    assert "gave up its last export" in caplog.text
    provider._hangs.set()


def test_two_providers_are_closed_at_the_same_time(registered) -> None:
    hanging, other = Provider(hangs=True), Provider()
    Farewell(other.shutdown, seconds=0.01)
    Farewell(hanging.shutdown, seconds=0.01)

    first, last = reversed(registered)
    first()
    other.closed.wait(10)
    last()

    assert other.closed.is_set()
    assert not hanging.closed.is_set()
    hanging._hangs.set()


def test_what_a_provider_raises_stays_there(monkeypatch) -> None:
    provider, raised = Provider(fails=True), []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    before = set(threading.enumerate())
    farewell = Farewell(provider.shutdown, seconds=10)
    (closing,) = set(threading.enumerate()) - before

    farewell()
    closing.join(10)

    assert provider.closed.is_set()
    assert not closing.is_alive()
    assert raised == []


def test_the_end_of_a_child_process_closes_nothing(monkeypatch) -> None:
    provider = Provider()
    farewell = Farewell(provider.shutdown, seconds=10)
    monkeypatch.setattr(os, "getpid", lambda: -1)

    farewell()

    assert not provider.closed.is_set()


@pytest.mark.parametrize(
    ("value", "seconds"), [(None, 0.5), ("3", 3), ("0", 0), ("soon", 0.5)]
)
def test_how_long_it_may_take_can_be_said(monkeypatch, value, seconds) -> None:
    if value is not None:
        monkeypatch.setenv("KEYLAG_LAST_EXPORT_SECONDS", value)

    assert environment.last_export_seconds() == seconds

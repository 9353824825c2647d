"""Flush at exit: the last export within its time limit."""

from __future__ import annotations

import atexit
import os
import threading
from threading import Event
from typing import Any

import pytest

from keylag_otel import environment
from keylag_otel.shutdown import FlushAtExit


@pytest.fixture(autouse=True)
def registered(monkeypatch) -> list[Any]:
    """The functions that are registered to run at exit."""
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


def test_provider_is_shut_down_at_exit(registered) -> None:
    provider = Provider()
    FlushAtExit(provider.shutdown, seconds=10)

    (at_exit,) = registered
    at_exit()

    assert provider.closed.is_set()


def test_hanging_provider_is_abandoned_at_the_deadline(caplog) -> None:
    caplog.set_level("INFO")
    provider = Provider(hangs=True)

    FlushAtExit(provider.shutdown, seconds=0.01)()

    assert not provider.closed.is_set()
    assert "gave up its last export" in caplog.text
    provider._hangs.set()


def test_providers_shut_down_concurrently(registered) -> None:
    hanging, other = Provider(hangs=True), Provider()
    FlushAtExit(other.shutdown, seconds=0.01)
    FlushAtExit(hanging.shutdown, seconds=0.01)

    first, last = reversed(registered)
    first()
    other.closed.wait(10)
    last()

    assert other.closed.is_set()
    assert not hanging.closed.is_set()
    hanging._hangs.set()


def test_exception_of_a_provider_is_suppressed(monkeypatch) -> None:
    provider, raised = Provider(fails=True), []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    before = set(threading.enumerate())
    farewell = FlushAtExit(provider.shutdown, seconds=10)
    (closing,) = set(threading.enumerate()) - before

    farewell()
    closing.join(10)

    assert provider.closed.is_set()
    assert not closing.is_alive()
    assert raised == []


def test_exit_of_a_forked_child_shuts_nothing_down(monkeypatch) -> None:
    provider = Provider()
    farewell = FlushAtExit(provider.shutdown, seconds=10)
    monkeypatch.setattr(os, "getpid", lambda: -1)

    farewell()

    assert not provider.closed.is_set()


@pytest.mark.parametrize(
    ("value", "seconds"), [(None, 0.5), ("3", 3), ("0", 0), ("soon", 0.5)]
)
def test_time_limit_comes_from_the_environment(monkeypatch, value, seconds) -> None:
    if value is not None:
        monkeypatch.setenv("KEYLAG_LAST_EXPORT_SECONDS", value)

    assert environment.last_export_seconds() == seconds
